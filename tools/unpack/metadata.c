#include "metadata.h"

#include "base/text.h"
#include "base/utf8.h"
#include "identity.h"

#include <string.h>
#include <strings.h>

#define MARKER_BYTES_MAX 1024u

struct header {
        const char *name, *value;
        size_t n_name, n;
};

/* The next header, its continuation lines left out of the value: they hold texts that nothing here needs. */
static bool next_header(const char **text, const char *end, struct header *ret)
{
        while (*text < end) {
                const char *line = *text, *newline = memchr(line, '\n', (size_t)(end - line)), *colon;
                size_t n = (size_t)((newline ? newline : end) - line);

                *text = newline ? newline + 1 : end;
                while (n && line[n - 1] == '\r')
                        n--;
                if (n == 0)
                        return false;            /* the body */
                colon = memchr(line, ':', n);
                if (*line == ' ' || *line == '\t' || !colon)
                        continue;
                *ret = (struct header){ line, colon + 1, (size_t)(colon - line), n - (size_t)(colon + 1 - line) };
                while (ret->n && (*ret->value == ' ' || *ret->value == '\t')) {
                        ret->value++;
                        ret->n--;
                }
                while (ret->n && (ret->value[ret->n - 1] == ' ' || ret->value[ret->n - 1] == '\t'))
                        ret->n--;
                return true;
        }
        return false;
}

static bool is_named(const struct header *h, const char *name)
{
        return h->n_name == strlen(name) && strncasecmp(h->name, name, h->n_name) == 0;
}

static bool is_printable(const char *text, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (text[i] < 0x20 || text[i] >= 0x7f)
                        return false;
        return true;
}

/* A value that decides: the first there is, if it can be shown. */
static void keep(const struct header *h, char *ret, size_t size)
{
        if (*ret || h->n >= size || !is_printable(h->value, h->n))
                return;
        memcpy(ret, h->value, h->n);
        ret[h->n] = 0;
}

void metadata_license(const char *text, size_t n, char *ret)
{
        struct rv_utf8 u = { 0 };
        size_t at = 0, characters = 0;

        for (size_t i = 0; i < n && text[i] != '\n' && text[i] != '\r' && characters < METADATA_LICENSE_CHARACTERS_MAX;
                i++) {
                enum rv_utf8_event e = rv_utf8_feed(&u, (uint8_t)text[i]);

                if (e == RV_UTF8_MORE)
                        continue;
                if (e == RV_UTF8_CHARACTER && u.code_point >= 0x20 && (u.code_point < 0x7f || u.code_point > 0x9f))
                        at += rv_utf8_encode(u.code_point, ret + at);
                else
                        ret[at++] = '?';
                i -= e == RV_UTF8_INVALID_BEFORE;
                characters++;
        }
        ret[at] = 0;
        /* What old tools write where nothing is said. */
        if (strcmp(ret, "UNKNOWN") == 0)
                *ret = 0;
}

/* "License :: OSI Approved :: MIT License" is "MIT License"; several are joined by commas. */
static void add_classifier(const struct header *h, char *ret, size_t size)
{
        static const char prefix[] = "License :: ";
        char one[METADATA_LICENSE_CHARACTERS_MAX * 4 + 1];
        const char *value = h->value;
        size_t n = h->n, used = strlen(ret);

        if (n <= strlen(prefix) || memcmp(value, prefix, strlen(prefix)) != 0)
                return;
        for (size_t i = 0; i + 4 <= h->n; i++)
                if (memcmp(h->value + i, " :: ", 4) == 0) {
                        value = h->value + i + 4;
                        n = h->n - i - 4;
                }
        metadata_license(value, n, one);
        if (!*one || used + strlen(one) + 3 > size)
                return;
        if (used) {
                memcpy(ret + used, ", ", 2);
                used += 2;
        }
        memcpy(ret + used, one, strlen(one) + 1);
}

/* NAME, whatever follows, and the marker behind the semicolon; behind a URL that has to stand after a space. */
static int add_requirement(const struct header *h, json_t *requires)
{
        char name[256], marker[MARKER_BYTES_MAX + 1] = "";
        size_t at = identity_python_canonical(h->value, h->n, name, sizeof(name)), begin;
        bool is_url = memchr(h->value, '@', h->n) != NULL;

        if (at == 0 || json_array_size(requires) >= METADATA_REQUIRES_MAX || !is_printable(h->value, h->n))
                return 0;
        while (at < h->n && (h->value[at] != ';' || (is_url && h->value[at - 1] != ' ')))
                at++;
        begin = at < h->n ? at + 1 : at;
        while (begin < h->n && h->value[begin] == ' ')
                begin++;
        if (h->n - begin > MARKER_BYTES_MAX)
                return 0;
        memcpy(marker, h->value + begin, h->n - begin);
        marker[h->n - begin] = 0;
        return json_array_append_new(requires, json_pack("{s:s, s:s}", "name", name, "marker", marker)) < 0 ? rv_raise(-ENOMEM) : 0;
}

int metadata_read(const char *text, size_t n, struct metadata *ret, struct fault *f)
{
        const char *end = text + n;
        char expression[sizeof(ret->license)] = "", free_text[sizeof(ret->license)] = "", classifiers[sizeof(ret->license)] = "";
        struct header h;
        int r = 0;

        ret->requires = json_array();
        if (!ret->requires)
                return rv_raise(-ENOMEM);
        if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
                text += 3;
        while (r == 0 && next_header(&text, end, &h)) {
                if (is_named(&h, "Name"))
                        keep(&h, ret->name, sizeof(ret->name));
                else if (is_named(&h, "Version"))
                        keep(&h, ret->version, sizeof(ret->version));
                else if (is_named(&h, "Requires-Python"))
                        keep(&h, ret->requires_python, sizeof(ret->requires_python));
                else if (is_named(&h, "License-Expression") && !*expression)
                        metadata_license(h.value, h.n, expression);
                else if (is_named(&h, "License") && !*free_text)
                        metadata_license(h.value, h.n, free_text);
                else if (is_named(&h, "Classifier"))
                        add_classifier(&h, classifiers, sizeof(classifiers));
                else if (is_named(&h, "Requires-Dist"))
                        r = add_requirement(&h, ret->requires);
        }
        if (r < 0)
                return rv_trace(r);
        rv_text_copy(ret->license, sizeof(ret->license),
                *expression          ? expression
                        : *free_text ? free_text
                                     : classifiers);
        if (!*ret->name || !*ret->version)
                return fault_set(f, UNPACK_UNSAFE, "it is not a wheel: METADATA has no usable %s", *ret->name ? "Version" : "Name");
        return 0;
}

int metadata_read_wheel(const char *text, size_t n, struct fault *f)
{
        const char *end = text + n;
        char quote[FAULT_QUOTE_SIZE];
        struct header h;

        while (next_header(&text, end, &h)) {
                if (!is_named(&h, "Wheel-Version"))
                        continue;
                if (h.n >= 3 && memcmp(h.value, "1.", 2) == 0 && strspn(h.value + 2, "0123456789") >= h.n - 2)
                        return 0;
                return fault_set(f, UNPACK_UNSAFE, "it is a wheel of version %s, and only 1.x can be installed", fault_quote(h.value, h.n, quote));
        }
        return fault_set(f, UNPACK_UNSAFE, "it is not a wheel: WHEEL has no Wheel-Version");
}

void metadata_fini(struct metadata *m)
{
        json_decref(m->requires);
        m->requires = NULL;
}
