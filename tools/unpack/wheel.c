#include "wheel.h"

#include "base/hash.h"
#include "identity.h"

#include <string.h>

#define INFO_SUFFIX ".dist-info"
#define DATA_SUFFIX ".data"
#define METADATA_BYTES_MAX ((size_t)4 << 20)
#define RECORD_BYTES_MAX ((size_t)32 << 20)      /* of 200000 members */

static bool ends_with(const char *text, size_t n, const char *suffix)
{
        size_t k = strlen(suffix);

        return n > k && memcmp(text + n - k, suffix, k) == 0;
}

void wheel_fini(struct wheel *w)
{
        free(w->dist_info);
        metadata_fini(&w->metadata);
        record_fini(&w->record);
        scripts_fini(&w->scripts);
        *w = (struct wheel){ 0 };
}

/* ---- What it says of itself ---- */

enum text_kind {
        TEXT_METADATA,
        TEXT_WHEEL,
        TEXT_RECORD,
        TEXT_ENTRY_POINTS,
        _TEXT_MAX,
};

static const char *const text_names[_TEXT_MAX] = {
        [TEXT_METADATA] = "METADATA",
        [TEXT_WHEEL] = "WHEEL",
        [TEXT_RECORD] = "RECORD",
        [TEXT_ENTRY_POINTS] = "entry_points.txt",
};

struct look {
        struct wheel *wheel;
        struct rv_buf texts[_TEXT_MAX];
        bool is_there[_TEXT_MAX];
        enum text_kind at;
};

static int meet_dist_info(struct look *l, const char *name, size_t n, struct fault *f)
{
        char quote[FAULT_QUOTE_SIZE], other[FAULT_QUOTE_SIZE];
        struct wheel *w = l->wheel;

        if (!w->dist_info) {
                w->dist_info = strndup(name, n);
                return w->dist_info ? 0 : rv_raise(-ENOMEM);
        }
        if (strlen(w->dist_info) == n && memcmp(w->dist_info, name, n) == 0)
                return 0;
        return fault_set(f, UNPACK_UNSAFE, "it has two directories that describe it: %s and %s",
                fault_quote(w->dist_info, strlen(w->dist_info), quote), fault_quote(name, n, other));
}

static int look_begin(void *ctx, const struct member *m, struct fault *f)
{
        struct look *l = ctx;
        size_t part = name_part(m->path, m->n), n;
        const char *rest = m->path + part + 1;
        char quote[FAULT_QUOTE_SIZE];
        int r;

        if (!ends_with(m->path, part, INFO_SUFFIX))
                return MEMBERS_E_SKIP;
        r = meet_dist_info(l, m->path, part, f);
        if (r || part == m->n)
                return r ? r : MEMBERS_E_SKIP;
        n = m->n - part - 1;
        for (l->at = 0; l->at < _TEXT_MAX; l->at++)
                if (strlen(text_names[l->at]) == n && memcmp(text_names[l->at], rest, n) == 0)
                        break;
        if (l->at == _TEXT_MAX || m->is_directory)
                return MEMBERS_E_SKIP;
        if (m->bytes > (l->at == TEXT_RECORD ? RECORD_BYTES_MAX : METADATA_BYTES_MAX))
                return fault_set(f, UNPACK_UNSAFE, "the member %s is larger than such a file may be", fault_quote(m->path, m->n, quote));
        l->is_there[l->at] = true;
        return rv_trace(rv_buf_reserve(&l->texts[l->at], m->bytes + 1));
}

static int look_data(void *ctx, const void *data, size_t n, struct fault *f)
{
        struct look *l = ctx;

        return rv_trace(rv_buf_append(&l->texts[l->at], data, n));
}

static int look_end(void *ctx, struct fault *f)
{
        struct look *l = ctx;

        return rv_trace(rv_buf_puts(&l->texts[l->at], ""));
}

static int judge_names(const struct wheel *w, struct fault *f)
{
        const struct wheel_want *want = w->want;
        const struct metadata *m = &w->metadata;
        size_t stem = strlen(w->dist_info) - strlen(INFO_SUFFIX);
        char quote[FAULT_QUOTE_SIZE], other[FAULT_QUOTE_SIZE];

        if (!identity_python_name(m->name, strlen(m->name), want->name, strlen(want->name)))
                return fault_set(f, UNPACK_MISNAMED, "it says that it is %s, and %s was asked for",
                        fault_quote(m->name, strlen(m->name), quote),
                        fault_quote(want->name, strlen(want->name), other));
        if (!identity_python_version(m->version, strlen(m->version), want->version, strlen(want->version)))
                return fault_set(f, UNPACK_MISNAMED, "it says that it is version %s, and %s was asked for",
                        fault_quote(m->version, strlen(m->version), quote),
                        fault_quote(want->version, strlen(want->version), other));
        if (!identity_stem(w->dist_info, stem, want->name, want->version))
                return fault_set(f, UNPACK_MISNAMED, "its directory %s is that of another name or version", fault_quote(w->dist_info, strlen(w->dist_info), quote));
        if (want->file_name && !identity_wheel_file(want->file_name, want->name, want->version))
                return fault_set(f, UNPACK_MISNAMED, "its file name %s is that of another name or version, or of no wheel", fault_quote(want->file_name, strlen(want->file_name), quote));
        return 0;
}

static int judge_texts(struct look *l, struct fault *f)
{
        struct wheel *w = l->wheel;
        int r = 0;

        if (!w->dist_info)
                return fault_set(f, UNPACK_UNSAFE, "it is not a wheel: it has no directory NAME-VERSION" INFO_SUFFIX);
        for (enum text_kind i = TEXT_METADATA; i <= TEXT_RECORD; i++)
                if (!l->is_there[i])
                        return fault_set(f, UNPACK_UNSAFE, "it is not a wheel: it has no %s", text_names[i]);
        r = metadata_read(l->texts[TEXT_METADATA].data, l->texts[TEXT_METADATA].size, &w->metadata, f);
        if (r == 0)
                r = judge_names(w, f);
        if (r == 0)
                r = metadata_read_wheel(l->texts[TEXT_WHEEL].data, l->texts[TEXT_WHEEL].size, f);
        if (r == 0)
                r = record_read(l->texts[TEXT_RECORD].data, l->texts[TEXT_RECORD].size, &w->record, f);
        if (r == 0 && l->is_there[TEXT_ENTRY_POINTS])
                r = scripts_read(l->texts[TEXT_ENTRY_POINTS].data, l->texts[TEXT_ENTRY_POINTS].size, &w->scripts, f);
        return r;
}

int wheel_look(int fd, const struct wheel_want *want, struct wheel *ret, struct fault *f)
{
        struct look l = { .wheel = ret };
        const struct visitor v = { look_begin, look_data, look_end, &l };
        int r;

        ret->want = want;
        r = members_walk(fd, MEMBER_WHEEL, &v, NULL, f);
        if (r == 0)
                r = judge_texts(&l, f);
        for (int i = 0; i < _TEXT_MAX; i++)
                rv_buf_fini(&l.texts[i]);
        return r < 0 ? rv_trace(r) : r;
}

/* ---- Where a member belongs ---- */

int wheel_where(const struct wheel *w, const char *path, size_t n, enum wheel_place *ret, const char **ret_rest,
        struct fault *f)
{
        static const struct {
                const char *name;
                enum wheel_place place;
        } kinds[] = { { "purelib", WHEEL_SITE }, { "platlib", WHEEL_SITE }, { "scripts", WHEEL_SCRIPTS }, { "data", WHEEL_DATA }, { "headers", WHEEL_HEADERS } };
        size_t part = name_part(path, n), kind;
        const char *rest = path + part + 1;
        char quote[FAULT_QUOTE_SIZE];

        *ret = WHEEL_SITE;
        *ret_rest = path;
        if (part < n && strlen(w->dist_info) == part && memcmp(path, w->dist_info, part) == 0 &&
                (strcmp(rest, "RECORD") == 0 || strcmp(rest, "RECORD.jws") == 0 || strcmp(rest, "RECORD.p7s") == 0))
                *ret = WHEEL_SIGNATURE;
        if (!ends_with(path, part, DATA_SUFFIX))
                return 0;
        if (!identity_stem(path, part - strlen(DATA_SUFFIX), w->want->name, w->want->version))
                return fault_set(f, UNPACK_UNSAFE, "the member %s is in a directory of data that is not the wheel's", fault_quote(path, n, quote));
        if (part == n)
                return 0;
        n -= part + 1;
        kind = name_part(rest, n);
        for (size_t i = 0; i < RV_N_ELEMENTS(kinds); i++) {
                if (strlen(kinds[i].name) != kind || memcmp(kinds[i].name, rest, kind) != 0)
                        continue;
                *ret = kinds[i].place;
                *ret_rest = rest + kind + (kind < n);
                return 0;
        }
        return fault_set(f, UNPACK_UNSAFE, "the member %s is in a place that wheels do not have", fault_quote(path, n + part + 1, quote));
}

/* ---- Its members ---- */

struct check {
        const struct wheel *wheel;
        const struct visitor *visitor;
        const struct record_row *row;    /* NULL: not compared */
        struct rv_sha256 sha256;
        struct rv_sha512 sha512;
        uint64_t bytes;
        const char *path;
        size_t n;
        bool is_wanted;
};

static int check_begin(void *ctx, const struct member *m, struct fault *f)
{
        struct check *c = ctx;
        enum wheel_place place;
        const char *rest;
        char quote[FAULT_QUOTE_SIZE];
        int r = wheel_where(c->wheel, m->path, m->n, &place, &rest, f);

        if (r)
                return r;
        if (!m->is_directory && place != WHEEL_SITE && place != WHEEL_SIGNATURE && !*rest)
                return fault_set(f, UNPACK_UNSAFE, "the member %s is in a place that wheels do not have", fault_quote(m->path, m->n, quote));
        c->row = m->is_directory || place == WHEEL_SIGNATURE ? NULL : record_find(&c->wheel->record, m->path, m->n);
        if (!m->is_directory && place != WHEEL_SIGNATURE && (!c->row || c->row->hash == RECORD_NONE))
                return fault_set(f, UNPACK_UNSAFE, "the member %s is not listed in RECORD with a digest", fault_quote(m->path, m->n, quote));
        c->path = m->path;
        c->n = m->n;
        c->bytes = m->bytes;
        if (c->row && c->row->hash == RECORD_SHA256)
                rv_sha256_init(&c->sha256);
        else if (c->row && c->row->hash == RECORD_SHA384)
                rv_sha384_init(&c->sha512);
        else
                rv_sha512_init(&c->sha512);
        r = c->visitor ? c->visitor->begin(c->visitor->ctx, m, f) : 0;
        c->is_wanted = c->visitor && r == 0;
        return r == MEMBERS_E_SKIP ? 0 : r;
}

static int check_data(void *ctx, const void *data, size_t n, struct fault *f)
{
        struct check *c = ctx;

        if (c->row && c->row->hash == RECORD_SHA256)
                rv_sha256_update(&c->sha256, data, n);
        else if (c->row)
                rv_sha512_update(&c->sha512, data, n);
        return c->is_wanted ? c->visitor->data(c->visitor->ctx, data, n, f) : 0;
}

static int check_end(void *ctx, struct fault *f)
{
        struct check *c = ctx;
        uint8_t digest[RV_SHA512_SIZE];
        char quote[FAULT_QUOTE_SIZE];

        if (c->row) {
                if (c->row->hash == RECORD_SHA256)
                        rv_sha256_final(&c->sha256, digest);
                else
                        rv_sha512_final(&c->sha512, digest);
                if (memcmp(digest, c->row->digest, record_hash_size(c->row->hash)) != 0 ||
                        (c->row->bytes >= 0 && (uint64_t)c->row->bytes != c->bytes))
                        return fault_set(f, UNPACK_UNSAFE, "the member %s is not what RECORD says", fault_quote(c->path, c->n, quote));
        }
        return c->is_wanted ? c->visitor->end(c->visitor->ctx, f) : 0;
}

int wheel_walk(int fd, const struct wheel *w, const struct visitor *v, struct member_counts *ret, struct fault *f)
{
        struct check c = { .wheel = w, .visitor = v };
        const struct visitor all = { check_begin, check_data, check_end, &c };
        int r = members_walk(fd, MEMBER_WHEEL, &all, ret, f);

        return r < 0 ? rv_trace(r) : r;
}
