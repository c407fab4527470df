#include "package/index_private.h"

#include "base/utf8.h"

#include <string.h>
#include <strings.h>

/* HTML as PEP 503 uses it: of tags only <a>, <base> and <meta> are looked at, comments are passed over. */

#define ATTRIBUTE_MAX ((size_t)RV_INDEX_URL_MAX * 2)

struct html {
        const char *p, *end;
        struct rv__page *page;
        struct rv_buf href, requires_python, value;
        char base[RV_INDEX_URL_MAX];
        bool has_version;            /* <meta name="pypi:repository-version"> */
        bool has_title;              /* "Links for" in the text, as an index without files says too */
        size_t n_files;
};

static bool is_space(char c)
{
        return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_space(struct html *h)
{
        while (h->p < h->end && is_space(*h->p))
                h->p++;
}

static bool begins(const struct html *h, const char *text)
{
        size_t n = strlen(text);

        return (size_t)(h->end - h->p) >= n && strncasecmp(h->p, text, n) == 0;
}

/* &amp; and the like, &#38; and &#x26;. Returns what is behind, or NULL: it is none. */
static const char *take_entity(const char *c, const char *end, struct rv_buf *out)
{
        static const char *const names[][2] = { { "&amp;", "&" }, { "&lt;", "<" }, { "&gt;", ">" }, { "&quot;", "\"" },
                { "&apos;", "'" } };
        uint32_t code_point = 0;
        bool is_hex;
        char text[4];
        size_t n = 0;

        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++)
                if ((size_t)(end - c) >= strlen(names[i][0]) && memcmp(c, names[i][0], strlen(names[i][0])) == 0) {
                        rv_buf_puts(out, names[i][1]);
                        return c + strlen(names[i][0]);
                }
        if (end - c < 4 || c[1] != '#')
                return NULL;
        is_hex = (c[2] | 0x20) == 'x';
        for (c += is_hex ? 3 : 2; c < end && *c != ';' && n < 8; c++, n++) {
                static const char digits[] = "0123456789abcdef";
                const char *at = strchr(digits, *c >= 'A' && *c <= 'F' ? *c | 0x20 : *c);

                if (!*c || !at || (!is_hex && at - digits > 9))
                        return NULL;
                code_point = code_point * (is_hex ? 16 : 10) + (uint32_t)(at - digits);
        }
        if (n == 0 || c == end || *c != ';' || code_point < 0x20 || code_point > 0x10ffff ||
                (code_point >= 0xd800 && code_point < 0xe000))
                return NULL;
        rv_buf_append(out, text, rv_utf8_encode(code_point, text));
        return c + 1;
}

static void decode(const char *c, const char *end, struct rv_buf *out)
{
        out->size = 0;
        while (c < end && out->size < ATTRIBUTE_MAX) {
                const char *behind = *c == '&' ? take_entity(c, end, out) : NULL;

                if (!behind)
                        rv_buf_putc(out, *c);
                c = behind ? behind : c + 1;
        }
        /* What is no text counts as nothing. */
        if (rv_buf_error(out) == 0 && (memchr(out->data ? out->data : "", 0, out->size) || !rv_utf8_check(out->data ? out->data : "", out->size, NULL)))
                out->size = 0;
        if (out->data)
                out->data[out->size] = 0;
}

/* The next attribute's name, its value decoded into h->value. False at the tag's end, behind which the cursor then is. */
static bool next_attribute(struct html *h, struct rv_index_text *ret)
{
        const char *start, *stop;

        for (skip_space(h); h->p < h->end && *h->p == '/'; skip_space(h))
                h->p++;
        if (h->p == h->end)
                return false;
        if (*h->p == '>') {
                h->p++;
                return false;
        }
        for (start = h->p; h->p < h->end && !is_space(*h->p) && !strchr("=>/", *h->p ? *h->p : 'x');)
                h->p++;
        if (h->p == start)
                h->p++;      /* a "=" that belongs to nothing */
        *ret = (struct rv_index_text){ start, (size_t)(h->p - start) };
        h->value.size = 0;
        skip_space(h);
        if (h->p == h->end || *h->p != '=')
                return true;
        h->p++;
        skip_space(h);
        start = h->p;
        if (h->p < h->end && (*h->p == '"' || *h->p == '\'')) {
                stop = memchr(h->p + 1, *h->p, (size_t)(h->end - h->p - 1));
                start++;
                h->p = stop ? stop + 1 : h->end;
                stop = stop ? stop : h->end;
        } else {
                while (h->p < h->end && !is_space(*h->p) && *h->p != '>')
                        h->p++;
                stop = h->p;
        }
        decode(start, stop, &h->value);
        return true;
}

static bool is_named(const struct rv_index_text *name, const char *wanted)
{
        return name->n == strlen(wanted) && strncasecmp(name->text, wanted, name->n) == 0;
}

static void move(struct rv_buf *to, struct rv_buf *from)
{
        struct rv_buf spare = *to;

        *to = *from;
        *from = spare;
        from->size = 0;
}

static const char *text_of(const struct rv_buf *b)
{
        return b->size && b->data ? b->data : "";
}

/* The last part of an address's path, %XX undone. */
static bool name_of(const char *url, char ret[RV_INDEX_NAME_MAX + 1])
{
        size_t n_path = strcspn(url, "?#"), start = n_path, n = 0;

        while (start && url[start - 1] != '/')
                start--;
        for (size_t i = start; i < n_path; i++) {
                unsigned byte = (uint8_t)url[i];
                char hex[3] = { 0 };

                if (byte == '%' && n_path - i > 2) {
                        memcpy(hex, url + i + 1, 2);
                        if (!rv_index_is_hex(hex, 2))
                                return false;
                        byte = (unsigned)strtoul(hex, NULL, 16);
                        i += 2;
                }
                if (n == RV_INDEX_NAME_MAX || byte <= 0x20 || byte >= 0x7f || byte == '/')
                        return false;
                ret[n++] = (char)byte;
        }
        ret[n] = 0;
        return n > 0;
}

static void take_anchor(struct html *h)
{
        struct rv__page_file f = { .sha256 = "", .size_bytes = -1, .published_at = -1 };
        char file[RV_INDEX_NAME_MAX + 1];
        struct rv_index_text name;

        h->href.size = h->requires_python.size = 0;
        while (next_attribute(h, &name))
                if (is_named(&name, "href"))
                        move(&h->href, &h->value);
                else if (is_named(&name, "data-requires-python"))
                        move(&h->requires_python, &h->value);
                else if (is_named(&name, "data-yanked"))
                        f.is_yanked = true;
        if (!h->href.size || !name_of(text_of(&h->href), file))
                return;
        f.file = file;
        f.url = text_of(&h->href);
        f.requires_python = text_of(&h->requires_python);
        h->n_files += rv__page_add_file(h->page, &f);
}

/* The first one tells where relative links start from. */
static void take_base(struct html *h)
{
        struct rv_index_text name;
        const char *fragment;
        char url[RV_INDEX_URL_MAX];

        while (next_attribute(h, &name))
                if (is_named(&name, "href") && !*h->base && rv_index_url(h->page->url, text_of(&h->value), url, &fragment)) {
                        memcpy(h->base, url, strlen(url) + 1);
                        h->page->url = h->base;
                }
}

static void take_meta(struct html *h)
{
        struct rv_index_text name;

        while (next_attribute(h, &name))
                if (is_named(&name, "name") && strcmp(text_of(&h->value), "pypi:repository-version") == 0)
                        h->has_version = true;
}

static void take_tag(struct html *h)
{
        struct rv_index_text tag = { ++h->p, 0 }, name;
        const char *close;

        if (begins(h, "!--")) {
                close = memmem(h->p, (size_t)(h->end - h->p), "-->", 3);
                h->p = close ? close + 3 : h->end;
                return;
        }
        while (h->p < h->end && !is_space(*h->p) && *h->p != '>' && *h->p != '/')
                h->p++, tag.n++;
        if (is_named(&tag, "a")) {
                take_anchor(h);
        } else if (is_named(&tag, "base")) {
                take_base(h);
        } else if (is_named(&tag, "meta")) {
                take_meta(h);
        } else if (tag.n) {
                while (next_attribute(h, &name))
                        ;
        }
}

bool rv__index_html_read(struct rv__page *page, const char *text, size_t n)
{
        struct html h = { .p = text, .end = text + n, .page = page };
        const char *url = page->url;

        while (h.p < h.end && !page->is_failed && !page->is_too_large) {
                const char *tag = memchr(h.p, '<', (size_t)(h.end - h.p)), *stop = tag ? tag : h.end;

                if (begins(&h, "links for ") && stop > h.p)
                        h.has_title = true;
                h.p = stop;
                if (tag)
                        take_tag(&h);
        }
        page->url = url;
        page->is_failed = page->is_failed || h.href.is_failed || h.requires_python.is_failed || h.value.is_failed;
        rv_buf_fini(&h.href);
        rv_buf_fini(&h.requires_python);
        rv_buf_fini(&h.value);
        return h.n_files > 0 || h.has_version || h.has_title || page->is_too_large;
}
