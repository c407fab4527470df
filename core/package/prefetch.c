#include "package/prefetch.h"

#include "package/unpack.h"
#include "package/wheel_tags.h"
#include "policy/constraint.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS_MAX 4u
#define FILE_BYTES_MAX ((size_t)64 << 20)        /* a larger one is fetched if it is really wanted */

/* One package that may be wanted. */
struct guess {
        char *name;
        const char *constraint;          /* of the request; "": nothing is known */
        const char *version;             /* found; into its page */
        const json_t *file;
};

struct guesses {
        struct guess list[RV_PREFETCH_FILES_MAX];
        size_t n, n_done;                /* those before n_done were looked at */
        unsigned n_rounds;
};

static void add(struct guesses *g, const char *name, const char *constraint)
{
        for (size_t i = 0; i < g->n; i++)
                if (strcmp(g->list[i].name, name) == 0)
                        return;
        if (g->n == RV_PREFETCH_FILES_MAX)
                return;
        g->list[g->n] = (struct guess){ .name = strdup(name), .constraint = constraint };
        if (g->list[g->n].name)
                g->n++;
}

static bool is_wanted(const struct guess *guess, const char *text)
{
        struct rv_version version;

        if (rv_version_parse(rv_version_order_for("python"), text, strlen(text), &version) < 0)
                return false;
        if (!*guess->constraint)
                return !rv_version_is_pre(&version);
        return rv_constraint_has(guess->constraint, text, &version) == 1;
}

/* A wheel that the runtime can take: one for its platform before one for any. */
static const json_t *choose_file(const char *name, const json_t *version, const char *tag)
{
        const json_t *file, *found = NULL;
        size_t i;

        json_array_foreach(json_object_get(version, "files"), i, file) {
                struct rv_index_file parsed;
                bool is_any;

                if (json_is_true(json_object_get(file, "yanked")) || !rv_index_file_parse(rv_json_get_string(file, "file", ""), name, &parsed) ||
                        parsed.kind != RV_INDEX_WHEEL || rv_wheel_fit(&parsed, tag) != RV_WHEEL_FITS)
                        continue;
                is_any = parsed.platform.n == 3 && memcmp(parsed.platform.text, "any", 3) == 0;
                if (!found || !is_any)
                        found = file;
                if (!is_any)
                        break;
        }
        return found;
}

static void choose(struct guess *guess, const json_t *page, const char *tag)
{
        _cleanup_(rv_freep) const char **versions = NULL;
        size_t n = 0;

        if (strcmp(rv_json_get_string(page, "status", ""), "ok") != 0 || rv_metadata_versions(page, &versions, &n) < 0)
                return;
        while (n-- > 0 && !guess->file)
                if (is_wanted(guess, versions[n])) {
                        guess->version = versions[n];
                        guess->file = choose_file(guess->name, json_object_get(json_object_get(page, "versions"), versions[n]), tag);
                }
}

static int read_pages(const struct rv_metadata_source *source, struct guesses *g, struct rv_prefetched *p)
{
        const char *names[RV_PREFETCH_FILES_MAX];
        _cleanup_(rv_json_unrefp) json_t *pages = NULL;
        size_t n = 0;
        int r;

        for (size_t i = g->n_done; i < g->n; i++)
                names[n++] = g->list[i].name;
        r = rv_metadata_get(source, names, n, &pages, NULL);
        if (r < 0)
                return rv_trace(r);
        if (!p->pages)
                p->pages = json_object();
        return json_object_update(p->pages, pages) < 0 ? rv_raise(-ENOMEM) : 0;
}

static int fetch(const struct rv_metadata_source *source, int dir_fd, struct guesses *g, const json_t *pages,
        struct rv_prefetched *p)
{
        struct rv_fetch_item items[RV_PREFETCH_FILES_MAX] = { 0 };
        size_t n = 0, first = p->n_files;
        _cleanup_(rv_arena_fini) struct rv_arena arena = { 0 };
        int r = 0;

        for (size_t i = g->n_done; i < g->n && first + n < RV_PREFETCH_FILES_MAX; i++) {
                const char *url = rv_json_get_string(g->list[i].file, "url", NULL);
                char *copy;

                items[n].q = (struct rv_fetch_request){ .method = "GET" };
                if (!url ||
                        rv_metadata_request(
                                source, json_object_get(pages, g->list[i].name), url, &arena, &items[n].q) != 0 ||
                        !(copy = strdup(url)))
                        continue;
                items[n].q.max_bytes = FILE_BYTES_MAX;
                items[n].q.timeout_ms = RV_METADATA_PAGE_MS;
                p->files[first + n].url = copy;
                snprintf(p->files[first + n].file, RV_PREFETCH_FILE_SIZE, "g%zu", first + n);
                items[n].file = p->files[first + n].file;
                n++;
        }
        p->n_files += n;
        if (n)
                r = rv_metadata_fetch(source, items, n, dir_fd, NULL);
        for (size_t i = 0; i < n; i++) {
                if (r < 0 || items[i].answer.code != RV_FETCH_OK || items[i].answer.status != 200)
                        p->files[first + i].file[0] = 0;
                rv_metadata_request_wipe(&items[i].q);
                rv_fetch_answer_fini(&items[i].answer);
        }
        return rv_trace(r);
}

/* Its place in the list; n_files: it is not there. */
static size_t find_file(const struct rv_prefetched *p, const char *url)
{
        size_t i = 0;

        while (i < p->n_files && strcmp(p->files[i].url, url) != 0)
                i++;
        return i;
}

/* Whoever takes a file need not have it read again. */
static void keep_scan(struct rv_prefetched *p, size_t place, json_t *asked, json_t *found)
{
        if (p->files[place].found || json_object_get(found, "fault"))
                return;
        p->files[place].asked = json_incref(asked);
        p->files[place].found = json_incref(found);
}

/* What the wheels of this round say that they need. */
static int look_further(const struct rv_metadata_source *source, int unpack_fd, int dir_fd, struct guesses *g,
        struct rv_prefetched *p, size_t n_before)
{
        _cleanup_(rv_json_unrefp) json_t *job = json_pack("{s:s, s:[]}", "language", "python", "artifacts"),
                                         *result = NULL;
        json_t *asked = json_object_get(job, "artifacts"), *found, *needed;
        size_t places[RV_PREFETCH_FILES_MAX], i, k;
        int r;

        for (i = n_before; i < g->n_done; i++) {
                size_t place = find_file(p, rv_json_get_string(g->list[i].file, "url", ""));

                if (place == p->n_files || !*p->files[place].file)
                        continue;
                places[json_array_size(asked)] = place;
                (void)json_array_append_new(asked, json_pack("{s:s, s:s, s:s, s:s}", "file", p->files[place].file, "name", g->list[i].name, "version", g->list[i].version, "file_name",
                                                             rv_json_get_string(g->list[i].file, "file", "")));
        }
        if (!json_array_size(asked))
                return 0;
        r = rv_unpack_scan(unpack_fd, dir_fd, job, source->stop, source->deadline_us, &result, NULL);
        json_array_foreach(json_object_get(result, "artifacts"), i, found) {
                if (i < json_array_size(asked))
                        keep_scan(p, places[i], json_array_get(asked, i), found);
                json_array_foreach(json_object_get(found, "requires"), k, needed)
                        if (!strstr(rv_json_get_string(needed, "marker", ""), "extra"))
                                add(g, rv_json_get_string(needed, "name", ""), "");
        }
        return rv_trace(r);
}

void rv_prefetch(const struct rv_metadata_source *source, int unpack_fd, int dir_fd, const struct rv_package *packages,
        size_t n_packages, const char *tag, struct rv_prefetched *ret)
{
        _cleanup_(rv_freep) struct guesses *g = calloc(1, sizeof(*g));

        for (size_t i = 0; g && i < n_packages; i++)
                add(g, packages[i].name, packages[i].constraint);
        while (g && g->n_rounds < ROUNDS_MAX && g->n_done < g->n && !(source->stop && *source->stop)) {
                size_t n_before = g->n_done;

                if (read_pages(source, g, ret) < 0)
                        break;
                g->n_rounds++;
                for (size_t i = n_before; i < g->n; i++)
                        choose(&g->list[i], json_object_get(ret->pages, g->list[i].name), tag);
                if (fetch(source, dir_fd, g, ret->pages, ret) < 0)
                        break;
                g->n_done = g->n;
                if (look_further(source, unpack_fd, dir_fd, g, ret, n_before) < 0)
                        break;
        }
        for (size_t i = 0; g && i < g->n; i++)
                free(g->list[i].name);
}

bool rv_prefetched_take(struct rv_prefetched *p, int dir_fd, const char *url, const char *name)
{
        for (size_t i = 0; i < p->n_files; i++)
                if (p->files[i].file[0] && strcmp(p->files[i].url, url) == 0 &&
                        renameat(dir_fd, p->files[i].file, dir_fd, name) == 0) {
                        p->files[i].file[0] = 0;
                        return true;
                }
        return false;
}

const json_t *rv_prefetched_scan(const struct rv_prefetched *p, const char *url, const json_t *asked)
{
        static const char *const members[] = { "name", "version", "file_name" };
        size_t place = find_file(p, url);

        for (size_t i = 0; place < p->n_files && i < RV_N_ELEMENTS(members); i++)
                if (!json_equal(json_object_get(p->files[place].asked, members[i]), json_object_get(asked, members[i])))
                        return NULL;
        return place < p->n_files ? p->files[place].found : NULL;
}

void rv_prefetched_fini(struct rv_prefetched *p)
{
        for (size_t i = 0; i < p->n_files; i++) {
                free(p->files[i].url);
                json_decref(p->files[i].asked);
                json_decref(p->files[i].found);
        }
        json_decref(p->pages);
        *p = (struct rv_prefetched){ 0 };
}
