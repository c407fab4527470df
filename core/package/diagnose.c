#include "package/diagnose_private.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DEMANDS_MAX 80u              /* a request has at most 50 packages; then the hints */

static const struct {
        const char *word;
        bool is_retryable;
} causes[_RV_PACKAGE_CAUSE_MAX] = {
        [RV_PACKAGE_CAUSE_NONE] = { "", false },
#define X(name, word, is_retryable) [RV_PACKAGE_CAUSE_##name] = { word, is_retryable },
        RV_PACKAGE_CAUSES(X)
#undef X
};

const char *rv_package_cause_word(enum rv_package_cause cause)
{
        return (unsigned)cause < _RV_PACKAGE_CAUSE_MAX ? causes[cause].word : "";
}

void rv__find(struct rv__finding *f, enum rv_package_cause cause, const char *package, const char *fmt, ...)
{
        va_list ap;

        if (f->cause != RV_PACKAGE_CAUSE_NONE)
                return;
        f->cause = cause;
        rv_text_copy(f->package, sizeof(f->package), package);
        va_start(ap, fmt);
        vsnprintf(f->message, sizeof(f->message), fmt, ap);
        va_end(ap);
}

void rv__diagnose_page(const json_t *page, struct rv__finding *f)
{
        const char *status = rv_json_get_string(page, "status", ""), *text = rv_json_get_string(page, "text", "");
        const char *name = rv_json_get_string(page, "name", "");

        if (strcmp(status, "missing") == 0) {
                rv__find(f, RV_PACKAGE_CAUSE_MISSING_PACKAGE, name, "the registry has no package %s: check its name", name);
        } else if (strcmp(status, "unreachable") == 0) {
                rv__find(f, RV_PACKAGE_CAUSE_UNREACHABLE, name, "the registry cannot be reached: %.300s; try again", text);
        } else if (strcmp(status, "error") == 0) {
                rv__find(f, RV_PACKAGE_CAUSE_ERROR, name, "the registry failed when asked for %.80s: %.300s; try again", name, text);
        } else if (strcmp(status, "refused") == 0) {
                bool is_ours = json_integer_value(json_object_get(page, "http_status")) == 0;

                rv__find(f, RV_PACKAGE_CAUSE_REFUSED, name, "the registry refused to tell of %.80s: %.300s; see its credentials and permissions", name, text);
                f->is_ours = f->is_ours || (f->cause == RV_PACKAGE_CAUSE_REFUSED && is_ours);
        } else if (strcmp(status, "tls") == 0) {
                rv__find(f, RV_PACKAGE_CAUSE_TLS, name, "the registry is not who it should be: %.300s; see registries and its `ca` in the configuration", text);
        } else if (strcmp(status, "invalid") == 0) {
                rv__find(f, RV_PACKAGE_CAUSE_INVALID, name, "the registry gave no usable answer for %.80s: %.350s", name, text);
        }
}

/* ---- What is wanted, a package each ---- */

struct list {
        struct rv__demand demands[DEMANDS_MAX];
        size_t n;
        struct rv__hint hints[RV__HINTS_MAX];
        size_t n_hints;
};

static struct rv__demand *demand_for(struct list *l, const char *name, bool is_hint)
{
        for (size_t i = 0; i < l->n; i++)
                if (l->demands[i].is_hint == is_hint && strcmp(l->demands[i].name, name) == 0)
                        return &l->demands[i];
        if (l->n == DEMANDS_MAX)
                return NULL;
        l->demands[l->n] = (struct rv__demand){ .name = name, .is_hint = is_hint };
        return &l->demands[l->n++];
}

static void list_demands(const struct rv_package_trouble *t, struct list *l)
{
        const json_t *pins = json_object_get(t->obligations, "pins");

        for (size_t i = 0; i < t->n_packages; i++) {
                struct rv__demand *d = demand_for(l, t->packages[i].name, false);

                if (!d || d->n_constraints == RV__DEMAND_CONSTRAINTS_MAX)
                        continue;
                d->constraints[d->n_constraints++] = t->packages[i].constraint;
                d->is_pinned = d->is_pinned || t->packages[i].is_pinned;
                d->pin = rv_json_get_string(pins, d->name, NULL);
        }
}

static bool is_asked(const struct rv_package_trouble *t, const struct rv__hint *hint)
{
        for (size_t i = 0; i < t->n_packages; i++)
                if (strcmp(t->packages[i].name, hint->name) == 0 &&
                    (!*hint->constraint || strcmp(t->packages[i].constraint, hint->constraint) == 0))
                        return true;
        return false;
}

/* Each of a hint's constraints by itself: several may be of packages that are never installed together. */
static void list_hints(const struct rv_package_trouble *t, struct list *l)
{
        l->n_hints = rv__diagnose_words(t->source->registry->language, rv_json_get_string(t->closure, "text", ""), l->hints);
        for (size_t i = 0; i < l->n_hints && l->n < DEMANDS_MAX; i++)
                if (!is_asked(t, &l->hints[i]))
                        l->demands[l->n++] = (struct rv__demand){
                                .name = l->hints[i].name,
                                .constraints = { l->hints[i].constraint },
                                .n_constraints = *l->hints[i].constraint ? 1 : 0,
                                .is_pinned = strncmp(l->hints[i].constraint, "==", 2) == 0,
                                .pin = rv_json_get_string(json_object_get(t->obligations, "pins"), l->hints[i].name, NULL),
                                .is_hint = true,
                                .is_of_place = l->hints[i].is_of_place,
                        };
}

/* What policy pins that was not asked for, and that the tool's words need not name. */
static void list_pins(const struct rv_package_trouble *t, struct list *l)
{
        const char *name;
        json_t *pin;
        size_t i;

        json_object_foreach(json_object_get(t->obligations, "pins"), name, pin) {
                for (i = 0; i < t->n_packages && strcmp(t->packages[i].name, name) != 0; i++)
                        ;
                if (i == t->n_packages && l->n < DEMANDS_MAX && json_is_string(pin))
                        l->demands[l->n++] = (struct rv__demand){
                                .name = name, .pin = json_string_value(pin), .is_hint = true
                        };
        }
}

static int get_pages(const struct rv_package_trouble *t, const struct list *l, json_t **ret, struct rv_error *err)
{
        struct rv_metadata_source now = *t->source;
        const char *names[DEMANDS_MAX];

        for (size_t i = 0; i < l->n; i++)
                names[i] = l->demands[i].name;
        now.cache_ttl_ms = 0;
        return rv_trace(rv_metadata_get(&now, names, l->n, ret, err));
}

/* ---- The files ---- */

void rv__diagnose_answer(const struct rv__probe *p, const struct rv_fetch_item *item, struct rv__finding *f)
{
        const char *status = rv__metadata_status(item->answer.code, item->answer.status);
        char text[600];

        rv__metadata_describe(&item->answer, item->q.url, text, sizeof(text));
        if (strcmp(status, "missing") == 0)
                rv__find(f, RV_PACKAGE_CAUSE_INVALID, p->package, "the registry lists %.120s of %.80s and does not have it: %.200s; try again", p->file, p->package, text);
        else if (strcmp(status, "unreachable") == 0)
                rv__find(f, RV_PACKAGE_CAUSE_UNREACHABLE, p->package, "the registry's files cannot be reached: %.300s; try again", text);
        else if (strcmp(status, "error") == 0)
                rv__find(f, RV_PACKAGE_CAUSE_ERROR, p->package, "the registry failed when asked for %.120s: %.200s; try again", p->file, text);
        else if (strcmp(status, "refused") == 0)
                rv__find(f, RV_PACKAGE_CAUSE_REFUSED, p->package, "the registry refused to give %.120s: %.200s; see its credentials and permissions", p->file, text);
        else if (strcmp(status, "tls") == 0)
                rv__find(f, RV_PACKAGE_CAUSE_TLS, p->package, "the host of the registry's files is not who it should be: %.300s; see its `ca` in the configuration", text);
        else if (item->answer.code == RV_FETCH_REDIRECT_REFUSED)
                rv__find(f, RV_PACKAGE_CAUSE_REFUSED, p->package, "%.120s of %.80s lies outside of the registry: %.200s", p->file, p->package, text);
        else if (strcmp(status, "invalid") == 0 && item->answer.code != RV_FETCH_TOO_LARGE && strcmp(item->q.method, "HEAD") != 0)
                rv__find(f, RV_PACKAGE_CAUSE_INVALID, p->package, "the registry gave no usable answer for %.120s of %.80s: %.200s; try again", p->file, p->package, text);
        /* Some servers do not take HEAD: what else they answer to that says nothing. */
        if (f->cause == RV_PACKAGE_CAUSE_REFUSED &&
                (item->answer.code == RV_FETCH_REFUSED_ADDRESS || item->answer.code == RV_FETCH_REDIRECT_REFUSED))
                f->is_ours = true;
}

/* Are the files there that the tool would have read? */
static int probe(const struct rv_package_trouble *t, const struct rv__probe *probes, size_t n, struct rv__finding *f,
        struct rv_error *err)
{
        struct rv_fetch_item items[RV__PROBES_MAX] = { 0 };
        _cleanup_(rv_arena_fini) struct rv_arena arena = { 0 };
        struct rv_error why = { 0 };
        char host[RV_DOMAIN_SIZE];
        int r;

        for (size_t i = 0; i < n; i++) {
                const char *url = probes[i].url;

                items[i].q = (struct rv_fetch_request){ .method = "HEAD" };
                r = url ? rv_metadata_request(t->source, probes[i].page, url, &arena, &items[i].q) : rv_raise(-EINVAL);
                if (r < 0)
                        return rv_trace(r);
                if (r > 0) {
                        rv__find(f, RV_PACKAGE_CAUSE_REFUSED, probes[i].package,
                                "files of %.80s lie at %.120s, without TLS and outside of the registry: add that host to registries.%s.files in the configuration",
                                probes[i].package, rv__metadata_host(url, host, sizeof(host)),
                                rv_language_name(t->source->registry->language));
                        f->is_ours = true;
                        return 0;
                }
        }
        r = rv_metadata_fetch(t->source, items, n, -EBADF, &why);
        for (size_t i = 0; i < n; i++) {
                if (r == 0)
                        rv__diagnose_answer(&probes[i], &items[i], f);
                rv_metadata_request_wipe(&items[i].q);
                rv_fetch_answer_fini(&items[i].answer);
        }
        return r < 0 ? rv_error_set(err, rv_trace(r), "%s", why.message) : 0;
}

/* ---- All of it ---- */

/* That a tool names an address says nothing of what is wanted, but something may be wrong there. */
static const char *look_at_place(const json_t *page, const struct rv__demand *d, struct rv__finding *f)
{
        const char *status = rv_json_get_string(page, "status", ""), *version = d->n_constraints ? d->constraints[0] + 2 : "";

        if (strcmp(status, "ok") == 0)
                return rv_metadata_version(page, version) ? version : NULL;
        if (strcmp(status, "missing") != 0)
                rv__diagnose_page(page, f);
        return NULL;
}

/* The packages that were asked for first, then those of the tool's words. */
static int look_at_packages(const struct rv_package_trouble *t, const struct list *l, const json_t *pages,
        struct rv__finding *f, struct rv_error *err)
{
        struct rv__probe probes[RV__PROBES_MAX];
        size_t n = 0;
        int r;

        for (size_t i = 0; i < l->n && f->cause == RV_PACKAGE_CAUSE_NONE; i++) {
                const json_t *page = json_object_get(pages, l->demands[i].name), *file = NULL;
                const char *version = NULL;

                r = 0;
                if (l->demands[i].is_of_place)
                        version = look_at_place(page, &l->demands[i], f);
                else if (strcmp(rv_json_get_string(page, "status", ""), "ok") == 0)
                        r = rv__diagnose_package(t, page, &l->demands[i], f, &version);
                else
                        rv__diagnose_page(page, f);
                if (r < 0)
                        return rv_error_set(err, rv_trace(r), "out of memory while looking for what is wrong with %.80s", l->demands[i].name);
                if (version && !rv__is_built(t, l->demands[i].name, version) && n < RV__PROBES_MAX &&
                        t->source->registry->language == RV_LANGUAGE_PYTHON) {
                        rv__version_fault(t, page, version, l->demands[i].is_pinned, &file);
                        probes[n++] = (struct rv__probe){ l->demands[i].name, version, rv_json_get_string(file, "file", ""), rv_json_get_string(file, "url", NULL),
                                rv_json_get_string(file, "sha256", NULL), page };
                }
        }
        if (f->cause != RV_PACKAGE_CAUSE_NONE || n == 0)
                return 0;
        r = probe(t, probes, n, f, err);
        if (r < 0 || f->cause != RV_PACKAGE_CAUSE_NONE || t->dir_fd < 0)
                return rv_trace(r);
        return rv_trace(rv__diagnose_files(t, probes, n, f, err));
}

/* A registry that is in trouble says nothing of packages, so that what it says of others does not count either. */
static void look_at_pages(const struct list *l, const json_t *pages, struct rv__finding *f)
{
        for (size_t i = 0; i < l->n; i++) {
                const json_t *page = json_object_get(pages, l->demands[i].name);

                if (strcmp(rv_json_get_string(page, "status", ""), "missing") != 0)
                        rv__diagnose_page(page, f);
        }
}

/* Texts of a registry stand in it, and what was cut may end within a character. */
static void make_plain(char *text)
{
        for (; *text; text++)
                if (*text < 0x20 || *text >= 0x7f)
                        *text = '?';
}

static void tell(const struct rv__finding *f, const char *otherwise, struct rv_package_failure *ret)
{
        *ret = (struct rv_package_failure){
                .code = RV_PACKAGE_UNAVAILABLE,
                .cause = rv_package_cause_word(f->cause),
                .is_retryable = causes[f->cause].is_retryable && !f->is_ours,
        };
        if (f->install_cause) {
                ret->code = RV_PACKAGE_INSTALL_FAILED;
                ret->cause = f->install_cause;
        } else if (f->is_of_resolver) {
                *ret = (struct rv_package_failure){ .code = RV_PACKAGE_RESOLVER_CODE, .cause = RV_PACKAGE_RESOLVER_FAILED, .is_retryable = true };
        }
        rv_text_copy(ret->package, sizeof(ret->package), *f->package ? f->package : otherwise);
        rv_text_copy(ret->message, sizeof(ret->message), f->message);
        make_plain(ret->message);
}

int rv_package_failure_of_page(const json_t *page, struct rv_package_failure *ret)
{
        struct rv__finding f = { 0 };

        rv__diagnose_page(page, &f);
        if (f.cause == RV_PACKAGE_CAUSE_NONE)
                return 0;
        tell(&f, "", ret);
        return RV_PACKAGE_E_FAILED;
}

int rv_package_diagnose(const struct rv_package_trouble *t, struct rv_package_failure *ret, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *pages = NULL;
        _cleanup_(rv_freep) struct list *l = calloc(1, sizeof(*l));
        struct rv__finding f = { 0 };
        int r;

        if (!l || t->n_packages == 0)
                return rv_error_set(err, rv_raise(l ? -EINVAL : -ENOMEM), "there is nothing to look for, or no memory for it");
        list_demands(t, l);
        list_hints(t, l);
        list_pins(t, l);
        rv__diagnose_gate(t, NULL, &f);
        r = f.cause == RV_PACKAGE_CAUSE_NONE ? get_pages(t, l, &pages, err) : 0;        /* from a registry that says nothing there is nothing to wait for */
        if (r < 0)
                return rv_trace(r);
        rv__diagnose_gate(t, pages, &f);
        look_at_pages(l, pages, &f);
        if (f.cause == RV_PACKAGE_CAUSE_NONE)
                r = look_at_packages(t, l, pages, &f, err);
        if (r < 0)
                return rv_trace(r);
        rv__diagnose_elsewhere(t, &f);
        rv__diagnose_end(t, &f);
        tell(&f, t->packages[0].name, ret);
        if (f.source)
                *t->ret_source = f.source;
        return 0;
}
