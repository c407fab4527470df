#include "record.h"

#include "base/base64.h"
#include "base/buf.h"

#include <string.h>

#define FIELDS 3
#define DIGEST_TEXT_MAX 128u

static const struct {
        const char *name;
        size_t size;
} hashes[] = {
        [RECORD_SHA256] = { "sha256=", 32 },
        [RECORD_SHA384] = { "sha384=", 48 },
        [RECORD_SHA512] = { "sha512=", 64 },
};

size_t record_hash_size(enum record_hash hash)
{
        return hashes[hash].size;
}

void record_fini(struct record *r)
{
        name_table_fini(&r->names);
        free(r->rows);
        *r = (struct record){ 0 };
}

static int bad(struct fault *f, const struct rv_buf *path, const char *what)
{
        char quote[FAULT_QUOTE_SIZE];

        return fault_set(f, UNPACK_UNSAFE, "RECORD's line of %s %s", fault_quote(path->data ? path->data : "", path->size, quote), what);
}

/* ---- One line of comma-separated values ---- */

/* Reads a field into @out and the separator behind it. Returns the separator: ',' or '\n'; 0 for a quote out of place. */
static char read_field(const char **text, const char *end, struct rv_buf *out)
{
        const char *p = *text;
        bool is_quoted = p < end && *p == '"';

        out->size = 0;
        rv_buf_reserve(out, 1);
        for (p += is_quoted; p < end; p++) {
                if (is_quoted && *p == '"') {
                        if (p + 1 < end && p[1] == '"') {
                                p++;
                        } else {
                                is_quoted = false;
                                if (p + 1 < end && p[1] != ',' && p[1] != '\n' && p[1] != '\r')
                                        return 0;
                                continue;
                        }
                } else if (!is_quoted && (*p == ',' || *p == '\n')) {
                        break;
                }
                rv_buf_putc(out, *p);
        }
        if (is_quoted)
                return 0;
        while (out->size && (p == end || *p == '\n') && out->data[out->size - 1] == '\r')
                out->size--;
        *text = p < end ? p + 1 : end;
        return p < end ? *p : '\n';
}

static int read_digest(const struct rv_buf *field, struct record_row *row)
{
        char text[DIGEST_TEXT_MAX + 4];
        size_t n;

        if (field->size == 0)
                return 0;
        for (int i = RECORD_SHA256; i <= RECORD_SHA512; i++) {
                size_t name = strlen(hashes[i].name);

                if (field->size < name || memcmp(field->data, hashes[i].name, name) != 0)
                        continue;
                n = field->size - name;
                while (n && field->data[name + n - 1] == '=')
                        n--;
                if (n > DIGEST_TEXT_MAX)
                        return -EINVAL;
                for (size_t k = 0; k < n; k++) {
                        char c = field->data[name + k];

                        text[k] = c == '-' ? '+' : c == '_' ? '/' : c;
                }
                while (n % 4)
                        text[n++] = '=';
                row->hash = (enum record_hash)i;
                return rv_base64_read(text, n, row->digest, sizeof(row->digest)) == (ssize_t)hashes[i].size ? 0
                                                                                                            : -EINVAL;
        }
        return -EINVAL;
}

static int64_t read_size(const struct rv_buf *field)
{
        int64_t v = 0;

        if (field->size == 0)
                return -1;
        if (field->size > 15)
                return -EINVAL;
        for (size_t i = 0; i < field->size; i++) {
                if (field->data[i] < '0' || field->data[i] > '9')
                        return -EINVAL;
                v = v * 10 + (field->data[i] - '0');
        }
        return v;
}

static bool is_same_row(const struct record_row *a, const struct record_row *b)
{
        return a->hash == b->hash && a->bytes == b->bytes && memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;
}

static int add_row(struct record *r, const struct rv_buf *path, const struct record_row *row, struct fault *f)
{
        struct name_entry *there = name_find(&r->names, path->data, path->size);
        int e;

        if (there && there->kind == NAME_FILE)
                return is_same_row(&r->rows[there->owner], row) ? 0 : bad(f, path, "is there twice and says two things");
        if (r->n == r->n_room) {
                size_t n_room = r->n_room ? r->n_room * 2 : 64;
                struct record_row *rows = reallocarray(r->rows, n_room, sizeof(*rows));

                if (!rows)
                        return rv_raise(-ENOMEM);
                r->rows = rows;
                r->n_room = n_room;
        }
        e = name_add(&r->names, path->data, path->size, NAME_FILE, (uint32_t)r->n, &there);
        if (e)
                return e < 0 ? rv_trace(e) : bad(f, path, "names a file as a directory");
        r->rows[r->n++] = *row;
        return 0;
}

static int read_line(
        const char **text, const char *end, struct rv_buf fields[FIELDS], struct record *r, struct fault *f)
{
        struct record_row row = { 0 };
        char separator = ',';
        int n = 0, e;

        for (; separator == ',' && n < FIELDS; n++)
                separator = read_field(text, end, &fields[n]);
        for (int i = 0; i < n; i++)
                if (rv_buf_error(&fields[i]) < 0)
                        return rv_raise(-ENOMEM);
        if (n == 1 && separator == '\n' && fields[0].size == 0)
                return 0;
        if (n != FIELDS || separator != '\n')
                return bad(f, &fields[0], "has not three fields");
        e = name_check(fields[0].data, fields[0].size, f);
        if (e) {
                char text_of_it[FAULT_TEXT_SIZE];

                memcpy(text_of_it, f->text, sizeof(text_of_it));
                return fault_set(f, UNPACK_UNSAFE, "RECORD is at fault: %s", text_of_it);
        }
        if (read_digest(&fields[1], &row) < 0)
                return bad(f, &fields[0], "has no digest of SHA-256, SHA-384 or SHA-512");
        row.bytes = read_size(&fields[2]);
        if (row.bytes < -1)
                return bad(f, &fields[0], "has a size that is no number");
        return add_row(r, &fields[0], &row, f);
}

int record_read(const char *text, size_t n, struct record *ret, struct fault *f)
{
        struct rv_buf fields[FIELDS] = { 0 };
        const char *end = text + n;
        int r = 0;

        while (text < end && r == 0)
                r = read_line(&text, end, fields, ret, f);
        for (int i = 0; i < FIELDS; i++)
                rv_buf_fini(&fields[i]);
        return r < 0 ? rv_trace(r) : r;
}

const struct record_row *record_find(const struct record *r, const char *path, size_t n)
{
        const struct name_entry *e = name_find(&r->names, path, n);

        return e && e->kind == NAME_FILE ? &r->rows[e->owner] : NULL;
}
