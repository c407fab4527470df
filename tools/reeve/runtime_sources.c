#include "runtime_sources.h"

#include "base/fd.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define SPACE " \t"

/* What comes after the release's name in a suite's, if it is one that counts; else NULL. */
static const char *addition_of(const char *word, size_t n, const char *release, size_t *ret_n)
{
        static const char *const additions[] = { "", "-updates", "-security", "/updates" };
        size_t n_release = strlen(release);

        if (n < n_release || strncmp(word, release, n_release) != 0)
                return NULL;
        for (size_t i = 0; i < RV_N_ELEMENTS(additions); i++)
                if (n - n_release == strlen(additions[i]) && !strncmp(word + n_release, additions[i], n - n_release)) {
                        *ret_n = n - n_release;
                        return word + n_release;
                }
        return NULL;
}

/* "deb [ OPTIONS ] URI SUITE COMPONENT…" */
static void take_line(const char *line, size_t n_line, const char *release, const char *suite, struct rv_buf *out)
{
        _cleanup_(rv_freep) char *copy = strndup(line, n_line);
        const char *p, *suite_at, *addition;
        size_t n, n_addition;

        if (!copy) {
                out->is_failed = true;
                return;
        }
        copy[strcspn(copy, "#")] = 0;
        p = copy + strspn(copy, SPACE);
        if (strncmp(p, "deb", 3) != 0 || !strchr(SPACE, p[3]) || !p[3])
                return;
        p += 3;
        p += strspn(p, SPACE);
        if (*p == '[') {
                p = strchr(p, ']');
                if (!p)
                        return;
                p++;
                p += strspn(p, SPACE);
        }
        p += strcspn(p, SPACE);         /* the address */
        suite_at = p + strspn(p, SPACE);
        n = strcspn(suite_at, SPACE);
        addition = addition_of(suite_at, n, release, &n_addition);
        if (addition)
                rv_buf_printf(out, "%.*s%s%.*s%s\n", (int)(suite_at - copy), copy, suite, (int)n_addition, addition, suite_at + n);
}

int sources_take_lines(const char *text, const char *release, const char *suite, struct rv_buf *out)
{
        for (const char *p = text; *p;) {
                size_t n = strcspn(p, "\n");

                take_line(p, n, release, suite, out);
                p += n + (p[n] == '\n');
        }
        return rv_buf_error(out);
}

/* One field with the lines that continue it. */
struct field {
        const char *name, *value;        /* value: what is behind the colon, with what continues it, to the last newline */
        size_t n_name, n_value;
};

static const char *next_field(const char *p, const char *end, struct field *f)
{
        const char *colon, *line_end;

        *f = (struct field){ .name = p };
        line_end = memchr(p, '\n', (size_t)(end - p));
        line_end = line_end ? line_end + 1 : end;
        while (line_end < end && (*line_end == ' ' || *line_end == '\t' || *line_end == '#')) {
                const char *more = memchr(line_end, '\n', (size_t)(end - line_end));

                line_end = more ? more + 1 : end;
        }
        colon = memchr(p, ':', (size_t)(line_end - p));
        if (*p != '#' && colon) {
                f->n_name = (size_t)(colon - p);
                f->value = colon + 1;
                f->n_value = (size_t)(line_end - colon - 1);
        }
        return line_end;
}

static bool is_field(const struct field *f, const char *name)
{
        return f->n_name == strlen(name) && !strncasecmp(f->name, name, f->n_name);
}

/* The next word of a value, lines and comments in it being passed over; NULL at its end. */
static const char *next_word(const char *p, const char *end, size_t *ret_n)
{
        bool is_line_start = false;

        while (p < end && strchr(" \t\n", *p)) {
                is_line_start = *p == '\n';
                p++;
                if (is_line_start && p < end && *p == '#')
                        while (p < end && *p != '\n')
                                p++;
        }
        *ret_n = 0;
        while (p + *ret_n < end && !strchr(" \t\n", p[*ret_n]))
                (*ret_n)++;
        return *ret_n ? p : NULL;
}

static bool has_word(const struct field *f, const char *word)
{
        const char *end = f->value + f->n_value;
        size_t n;

        for (const char *p = next_word(f->value, end, &n); p; p = next_word(p + n, end, &n))
                if (n == strlen(word) && !strncasecmp(p, word, n))
                        return true;
        return false;
}

static size_t take_suites(const struct field *f, const char *release, const char *suite, struct rv_buf *out)
{
        const char *end = f->value + f->n_value;
        size_t n, n_taken = 0;

        rv_buf_puts(out, "Suites:");
        for (const char *p = next_word(f->value, end, &n); p; p = next_word(p + n, end, &n)) {
                size_t n_addition;
                const char *addition = addition_of(p, n, release, &n_addition);

                if (addition)
                        rv_buf_printf(out, " %s%.*s", suite, (int)n_addition, addition);
                n_taken += addition != NULL;
        }
        rv_buf_putc(out, '\n');
        return n_taken;
}

static void take_paragraph(const char *p, const char *end, const char *release, const char *suite, struct rv_buf *out)
{
        _cleanup_(rv_buf_fini) struct rv_buf mine = { 0 };
        bool is_wanted = true, has_types = false;
        size_t n_suites = 0;
        struct field f;

        while (p < end) {
                p = next_field(p, end, &f);
                if (!f.n_name)
                        continue;
                if (is_field(&f, "Enabled")) {
                        is_wanted = is_wanted && !has_word(&f, "no") && !has_word(&f, "false");
                } else if (is_field(&f, "Types")) {
                        has_types = has_word(&f, "deb");
                        rv_buf_puts(&mine, "Types: deb\n");
                } else if (is_field(&f, "Suites")) {
                        n_suites = take_suites(&f, release, suite, &mine);
                } else {
                        rv_buf_append(&mine, f.name, (size_t)(f.value + f.n_value - f.name));
                        if (f.value[f.n_value - 1] != '\n')
                                rv_buf_putc(&mine, '\n');
                }
        }
        if (rv_buf_error(&mine) < 0)
                out->is_failed = true;
        if (is_wanted && has_types && n_suites)
                rv_buf_printf(out, "%.*s\n", (int)mine.size, mine.data);
}

int sources_take_paragraphs(const char *text, const char *release, const char *suite, struct rv_buf *out)
{
        const char *p = text;

        while (*p) {
                const char *start = p;

                /* A paragraph ends at a line of blanks. */
                while (*p && strcspn(p, "\n") > strspn(p, SPACE "\r")) {
                        p += strcspn(p, "\n");
                        p += *p == '\n';
                }
                take_paragraph(start, p, release, suite, out);
                p += strspn(p, SPACE "\r");
                p += *p == '\n';
        }
        return rv_buf_error(out);
}

static int take_file(const char *path, bool is_lines, const char *release, const char *suite, struct rv_buf *out,
        struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        _cleanup_(rv_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        int r = fd < 0 ? -errno : rv_read_fd(fd, FILE_BYTES_MAX, &text);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return rv_error_set(err, r, "%s: %s", path, strerror(-r));
        if (!text.size)
                return 0;
        return is_lines ? sources_take_lines(text.data, release, suite, out)
                        : sources_take_paragraphs(text.data, release, suite, out);
}

static int take_files(const char *etc, const char *pattern, bool is_lines, const char *release, const char *suite,
        struct rv_buf *out, struct rv_error *err)
{
        char full[4096];
        glob_t found;
        int r = 0;

        snprintf(full, sizeof(full), "%s/%s", etc, pattern);
        if (glob(full, 0, NULL, &found) != 0)
                return 0;
        for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
                r = take_file(found.gl_pathv[i], is_lines, release, suite, out, err);
        globfree(&found);
        return r;
}

int sources_read(const char *etc, const char *release, const char *suite, struct rv_buf *ret_lines,
        struct rv_buf *ret_paragraphs, struct rv_error *err)
{
        size_t n_before = ret_lines->size + ret_paragraphs->size;
        int r = take_files(etc, "sources.list", true, release, suite, ret_lines, err);

        if (r == 0)
                r = take_files(etc, "sources.list.d/*.list", true, release, suite, ret_lines, err);
        if (r == 0)
                r = take_files(etc, "sources.list.d/*.sources", false, release, suite, ret_paragraphs, err);
        if (r < 0)
                return rv_error_set(err, rv_trace(r), "%s: %s", etc, strerror(-r));
        if (ret_lines->size + ret_paragraphs->size == n_before)
                return rv_error_set(err, rv_raise(-ENOENT), "%s names no source of %s from which %s could be had; say --mirror URL", etc, release, suite);
        return 0;
}

bool sources_release(const char *text, char *ret, size_t size)
{
        static const char name[] = "VERSION_CODENAME=";

        for (const char *p = text; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
                size_t n;

                if (strncmp(p, name, sizeof(name) - 1) != 0)
                        continue;
                p += sizeof(name) - 1;
                p += *p == '"';
                n = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789.-");
                if (!n || n >= size)
                        return false;
                snprintf(ret, size, "%.*s", (int)n, p);
                return true;
        }
        return false;
}
