#include "package/closure_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CLOSURE_DEPTH_MAX 24

int rv__closure_refuse(struct rv__closure *c, const char *cause, const char *package, const char *fmt, ...)
{
        char text[512];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        json_decref(c->end);
        c->end = json_pack("{s:s, s:s, s:s, s:s}", "code", "package_install_failed", "cause", cause, "package", package, "text", text);
        return c->end ? RV_CLOSURE_E_REFUSED : rv_raise(-ENOMEM);
}

int rv__closure_platform(struct rv__closure *c, const char *package, const char *text)
{
        json_decref(c->end);
        c->end = json_pack("{s:s, s:i, s:s, s:s}", "code", "EBADPLATFORM", "exit", 0, "package", package, "text", text);
        return c->end ? RV_CLOSURE_E_FAILED : rv_raise(-ENOMEM);
}

int rv__closure_too_large(struct rv__closure *c, size_t n)
{
        json_decref(c->end);
        c->end = json_pack("{s:I}", "n_packages", (json_int_t)n);
        return c->end ? RV_CLOSURE_E_TOO_LARGE : rv_raise(-ENOMEM);
}

/* How many bytes the control character here has: DEL and those of U+0080 to U+009F too; 0: here is none. */
static size_t control_size(const char *text, size_t n)
{
        uint8_t b = n ? (uint8_t)text[0] : ' ';

        if (b < ' ' || b == 0x7f)
                return 1;
        return b == 0xc2 && n > 1 && (uint8_t)text[1] < 0xa0 ? 2 : 0;
}

static bool is_plain(const char *text, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (control_size(text + i, n - i))
                        return false;
        return true;
}

const char *rv__closure_text(const json_t *object, const char *key, size_t max)
{
        const json_t *value = json_object_get(object, key);
        size_t n = json_string_length(value);

        return n > 0 && n <= max && is_plain(json_string_value(value), n) ? json_string_value(value) : NULL;
}

/* What the tool said, cut to fit; what is no plain text in it becomes spaces, but newlines. */
static json_t *tools_text(const json_t *value)
{
        char text[RV_CLOSURE_TEXT_MAX + 1] = "";
        size_t all = json_string_length(value), n = RV_MIN(all, (size_t)RV_CLOSURE_TEXT_MAX);

        if (n)
                memcpy(text, json_string_value(value), n);
        while (n > 0 && n < all && ((uint8_t)json_string_value(value)[n] & 0xc0) == 0x80)
                n--;   /* not within a character */
        for (size_t i = 0; i < n; i++)
                if (text[i] != '\n')
                        memset(text + i, ' ', control_size(text + i, n - i));
        return json_stringn(text, n);
}

static int compare_texts(const void *a, const void *b)
{
        return strcmp(json_string_value(*(json_t *const *)a), json_string_value(*(json_t *const *)b));
}

static int compare_packages(const void *a, const void *b)
{
        static const char *const keys[] = { "name", "version", "file" };
        int r = 0;

        for (size_t i = 0; i < RV_N_ELEMENTS(keys) && r == 0; i++)
                r = strcmp(rv_json_get_string(*(json_t *const *)a, keys[i], ""), rv_json_get_string(*(json_t *const *)b, keys[i], ""));
        return r;
}

static int sort_list(json_t *list, int (*compare)(const void *, const void *), bool is_once)
{
        size_t n = json_array_size(list), kept = 0;
        _cleanup_(rv_freep) json_t **sorted = calloc(n ? n : 1, sizeof(*sorted));

        if (!sorted)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                sorted[i] = json_incref(json_array_get(list, i));
        qsort(sorted, n, sizeof(*sorted), compare);
        for (size_t i = 0; i < n; i++) {
                if (is_once && i > 0 && compare(&sorted[i - 1], &sorted[i]) == 0)
                        continue;
                json_array_set(list, kept++, sorted[i]);
        }
        for (size_t i = 0; i < n; i++)
                json_decref(sorted[i]);
        while (json_array_size(list) > kept)
                json_array_remove(list, json_array_size(list) - 1);
        return 0;
}

int rv__closure_sort(json_t *packages)
{
        return sort_list(packages, compare_packages, false);
}

int rv__closure_sort_texts(json_t *list)
{
        return sort_list(list, compare_texts, true);
}

static int add_request(struct rv_buf *joined, json_t *extras, const struct rv_package *p)
{
        rv_buf_printf(joined, "%s%s", joined->size ? ", " : "", p->requested);
        for (size_t i = 0; i < p->n_extras; i++)
                if (json_array_append_new(extras, json_string(p->extras[i])) < 0)
                        return rv_raise(-ENOMEM);
        return rv_buf_error(joined);
}

int rv__closure_asked(struct rv__closure *c, json_t *entry, bool is_candidate)
{
        const char *name = rv_json_get_string(entry, "name", ""), *text = rv_json_get_string(entry, "version", "");
        _cleanup_(rv_buf_fini) struct rv_buf joined = { 0 };
        _cleanup_(rv_json_unrefp) json_t *extras = json_array();
        struct rv_version version;
        int r = rv_version_parse(rv_version_order_for(rv_language_name(c->language)), text, strlen(text), &version);

        if (r < 0)
                return rv_trace(r);
        for (size_t i = 0; i < c->n_requested && is_candidate; i++) {
                const struct rv_package *p = &c->requested[i];

                if (strcmp(p->name, name) != 0)
                        continue;
                if (c->language == RV_LANGUAGE_PYTHON ? !rv__python_satisfies(p->constraint, text, &version)
                                                      : !rv__npm_satisfies(p->constraint, &version))
                        return rv__closure_refuse(c, "name_mismatch", name, "%s was asked for, and the resolver's answer has version %s", p->requested, text);
                r = add_request(&joined, extras, p);
                if (r < 0)
                        return rv_trace(r);
        }
        if (!extras || rv__closure_sort_texts(extras) < 0 || json_object_set(entry, "extras", extras) < 0 ||
                json_object_set_new(entry, "direct", json_boolean(joined.size > 0)) < 0 ||
                json_object_set_new(entry, "requested", json_string(joined.size ? joined.data : "")) < 0)
                return rv_raise(-ENOMEM);
        return 0;
}

int rv__closure_has_all(struct rv__closure *c)
{
        for (size_t i = 0; i < c->n_requested; i++) {
                bool is_there = false;
                const json_t *entry;
                size_t at;

                json_array_foreach(c->packages, at, entry)
                        is_there = is_there || (json_is_true(json_object_get(entry, "direct")) &&
                                                       strcmp(rv_json_get_string(entry, "name", ""), c->requested[i].name) == 0);
                if (!is_there)
                        return rv__closure_refuse(c, "name_mismatch", c->requested[i].name, "%s was asked for, and the resolver's answer does not have it",
                                c->requested[i].requested);
        }
        return 0;
}

/* A member that is a text of such characters, or @otherwise if it is not there; NULL: it is something else. */
static const char *word(const json_t *object, const char *key, size_t max, const char *otherwise)
{
        const json_t *value = json_object_get(object, key);
        const char *text;

        if (!value || (json_is_string(value) && json_string_length(value) == 0))
                return otherwise;
        text = rv__closure_text(object, key, max);
        return text && text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-/")] == 0 ? text : NULL;
}

/* Takes `tool` and `runtime` into @out, checked. */
static int read_origin(const json_t *closure, json_t *out, const char **ret_tag, struct rv_error *err)
{
        const json_t *runtime = json_object_get(closure, "runtime"), *tool = json_object_get(closure, "tool");
        const char *tag = word(runtime, "tag", 64, NULL), *version = word(runtime, "version", 16, ""),
                   *interpreter = word(runtime, "interpreter", 4096, NULL);
        const char *name = word(tool, "name", 16, NULL), *tool_version = word(tool, "version", 64, "");

        if (!tag || !version || !interpreter || interpreter[0] != '/')
                return rv_error_set(err, rv_raise(-EINVAL), "the resolver's answer does not say what runtime it is for");
        if (!name || !tool_version)
                return rv_error_set(err, rv_raise(-EINVAL), "the resolver's answer does not say which tool it is from");
        if (json_object_set_new(out, "runtime", json_pack("{s:s, s:s, s:s}", "tag", tag, "version", version, "interpreter", interpreter)) < 0 ||
                json_object_set_new(out, "tool", json_pack("{s:s, s:s}", "name", name, "version", tool_version)) < 0)
                return rv_raise(-ENOMEM);
        *ret_tag = tag;
        return 0;
}

/* The tool found nothing: its own words are for people only. */
static int read_failure(const json_t *closure, json_t *out)
{
        json_int_t status = json_integer_value(json_object_get(closure, "exit"));
        const char *code = rv__closure_text(closure, "code", 64);

        if (json_object_set_new(out, "code", code ? json_string(code) : json_null()) < 0 ||
                json_object_set_new(out, "exit", json_integer(status >= 0 && status <= 255 ? status : 255)) < 0 ||
                json_object_set_new(out, "package", json_string("")) < 0 ||
                json_object_set_new(out, "text", tools_text(json_object_get(closure, "text"))) < 0)
                return rv_raise(-ENOMEM);
        return RV_CLOSURE_E_FAILED;
}

static int read_packages(struct rv__closure *c, const json_t *closure, json_t *out, struct rv_error *err)
{
        const char *key = c->language == RV_LANGUAGE_PYTHON ? "packages" : "lock";
        const json_t *list = json_object_get(closure, key);
        int r;

        c->packages = json_array();
        c->not_installed = json_array();
        if (json_object_set_new(out, "packages", c->packages) < 0 || json_object_set_new(out, "not_installed", c->not_installed) < 0)
                return rv_raise(-ENOMEM);
        r = c->language == RV_LANGUAGE_PYTHON ? rv__closure_python(c, list, err) : rv__closure_npm(c, list, err);
        return r ? r : rv__closure_has_all(c);
}

/* What there is instead of a list; a failure also says what it is from. */
static int take_end(struct rv__closure *c, json_t *out, json_t **ret)
{
        _cleanup_(rv_json_unrefp) json_t *end = rv_take(&c->end);

        if (json_object_get(end, "exit") &&
                (json_object_set(end, "tool", json_object_get(out, "tool")) < 0 || json_object_set(end, "runtime", json_object_get(out, "runtime")) < 0))
                return rv_raise(-ENOMEM);
        *ret = rv_take(&end);
        return 0;
}

int rv_closure_read(enum rv_language language, const char *text, size_t n, const struct rv_package *requested,
        size_t n_requested, json_t **ret, struct rv_error *err)
{
        struct rv__closure c = { .language = language, .requested = requested, .n_requested = n_requested };
        _cleanup_(rv_json_unrefp) json_t *closure = NULL, *out = json_object();
        int r, r_end;

        if (!out)
                return rv_raise(-ENOMEM);
        if (n > RV_CLOSURE_BYTES_MAX)
                return rv_error_set(err, rv_raise(-EMSGSIZE), "the resolver's answer is longer than %u bytes", RV_CLOSURE_BYTES_MAX);
        r = rv_json_read(text, n, CLOSURE_DEPTH_MAX, &closure, err);
        if (r < 0) {
                rv_error_prefix(err, "the resolver's answer");
                return r == -ENOMEM ? rv_trace(r) : rv_raise(-EINVAL);
        }
        if (strcmp(rv_json_get_string(closure, "schema", ""), "reeve.closure/1") != 0 || !json_is_boolean(json_object_get(closure, "ok")))
                return rv_error_set(err, rv_raise(-EINVAL), "the resolver's answer is no reeve.closure/1");
        r = read_origin(closure, out, &c.tag, err);
        if (r < 0)
                return r;
        r = json_is_true(json_object_get(closure, "ok")) ? read_packages(&c, closure, out, err) : read_failure(closure, out);
        if (r > 0 && c.end) {
                r_end = take_end(&c, out, ret);
                return r_end < 0 ? r_end : r;
        }
        json_decref(c.end);
        if (r >= 0)
                *ret = rv_take(&out);
        return r;
}
