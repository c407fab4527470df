#include "package/metadata_private.h"

#include <stdio.h>
#include <string.h>

/*
 * Many registries answer for a file with the address of a store for it, often one that is signed and good for minutes.
 * The helper follows no further than to the same host; what is beyond is followed here, if that host is known to be the
 * registry's, and with the credentials that are for that address.
 */

static const char *target_of(const struct rv_fetch_item *item)
{
        int status = item->answer.status;
        bool is_redirect = status == 301 || status == 302 || status == 303 || status == 307 || status == 308;

        return item->answer.code == RV_FETCH_OK && is_redirect ? rv_json_get_string(item->answer.headers, "location", NULL) : NULL;
}

static void replace(struct rv_fetch_answer *a, struct rv_fetch_answer by)
{
        rv_fetch_answer_fini(a);
        *a = by;
}

static bool is_in_the_clear(const char *url)
{
        return strncmp(url, "http://", 7) == 0;
}

/* The address itself may be as good as a password, so that only its host is told; it is the answer's own until then. */
static void refuse(struct rv_fetch_answer *a, enum rv_language language, const char *from, const char *target)
{
        struct rv_fetch_answer refusal = { .code = RV_FETCH_REDIRECT_REFUSED };
        char host[RV_DOMAIN_SIZE];

        if (!rv_index_is_url(target) || !*rv__metadata_host(target, host, sizeof(host)))
                snprintf(refusal.message, sizeof(refusal.message), "it is redirected to what is no address of HTTP, or a longer one than %u bytes", RV_INDEX_URL_MAX - 1);
        else if (is_in_the_clear(target) && !is_in_the_clear(from))
                snprintf(refusal.message, sizeof(refusal.message), "it is redirected to %.200s without TLS", host);
        else
                snprintf(refusal.message, sizeof(refusal.message), "it is redirected to %.200s, which is no host of the registry: name it in registries.%s.files if it is to be trusted",
                         host, rv_language_name(language));
        replace(a, refusal);
}

/* A request for what an item was redirected to, if that may be followed; else this is its answer. */
static int redirect(const struct rv_metadata_source *src, struct rv_fetch_item *item, struct rv_arena *arena,
        struct rv_fetch_item *ret, bool *ret_goes_on)
{
        const char *target = target_of(item);
        int r;

        *ret = (struct rv_fetch_item){
                .q = { .method = item->q.method, .max_bytes = item->q.max_bytes, .tells_redirects = true },
                .file = item->file
        };
        r = is_in_the_clear(target) && !is_in_the_clear(item->q.url)
                ? RV_METADATA_E_HOST
                : rv_metadata_request(src, NULL, target, arena, &ret->q);
        *ret_goes_on = r == 0;
        if (r == RV_METADATA_E_HOST || r == -EINVAL) {
                refuse(&item->answer, src->registry->language, item->q.url, target);
                return 0;
        }
        ret->q.timeout_ms = item->q.timeout_ms;
        return rv_trace(r);
}

/* Those that were redirected, once more; @items get the answers. Returns how many are redirected again. */
static int follow(const struct rv_metadata_source *src, struct rv_fetch_item *items, size_t n, int dir_fd,
        struct rv_arena *arena, struct rv_error *err)
{
        _cleanup_(rv_freep) struct rv_fetch_item *next = calloc(n + 1, sizeof(*next));
        _cleanup_(rv_freep) size_t *index = calloc(n + 1, sizeof(*index));
        size_t n_next = 0, n_again = 0;
        int r = next && index ? 0 : rv_raise(-ENOMEM);

        for (size_t i = 0; i < n && r == 0; i++) {
                bool goes_on = false;

                if (target_of(&items[i]))
                        r = redirect(src, &items[i], arena, &next[n_next], &goes_on);
                if (goes_on)
                        index[n_next++] = i;
        }
        if (r == 0 && n_next)
                r = rv_fetch_many(src->helper_fd, next, n_next, dir_fd, src->stop, src->deadline_us, err);
        for (size_t i = 0; i < n_next; i++) {
                rv_metadata_request_wipe(&next[i].q);
                if (r < 0)
                        continue;
                replace(&items[index[i]].answer, next[i].answer);
                items[index[i]].file_bytes = next[i].file_bytes;
                n_again += target_of(&items[index[i]]) != NULL;
        }
        return r < 0 ? rv_trace(r) : (int)n_again;
}

int rv_metadata_fetch(const struct rv_metadata_source *src, struct rv_fetch_item *items, size_t n, int dir_fd,
        struct rv_error *err)
{
        _cleanup_(rv_arena_fini) struct rv_arena arena = { 0 };
        int r;

        for (size_t i = 0; i < n; i++)
                items[i].q.tells_redirects = true;
        r = rv_fetch_many(src->helper_fd, items, n, dir_fd, src->stop, src->deadline_us, err);
        if (r < 0)
                return rv_trace(r);
        r = 1;
        for (unsigned i = 0; r > 0 && i < RV_METADATA_REDIRECTS_MAX; i++)
                r = follow(src, items, n, dir_fd, &arena, err);
        for (size_t i = 0; i < n; i++)
                if (r < 0)
                        replace(&items[i].answer, (struct rv_fetch_answer){ 0 });
                else if (target_of(&items[i]))
                        replace(&items[i].answer, (struct rv_fetch_answer){ .code = RV_FETCH_REDIRECT_REFUSED, .message = "it was redirected too often" });
        return r < 0 ? rv_trace(r) : 0;
}
