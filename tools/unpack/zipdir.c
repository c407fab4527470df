#include "zipdir.h"

#include "name.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define END_BYTES 22u
#define END64_BYTES 56u
#define LOCATOR_BYTES 20u
#define CENTRAL_BYTES 46u
#define LOCAL_BYTES 30u
#define COMMENT_BYTES_MAX 65535u
#define DIRECTORY_BYTES_MAX ((uint64_t)128 << 20)
#define EXTRA_ZIP64 1u

enum flag {
        FLAG_ENCRYPTED = 1 << 0,
        FLAG_DESCRIPTOR = 1 << 3,        /* sizes and CRC stand behind the data */
        FLAG_STRONG = 1 << 6,
        FLAG_UTF8 = 1 << 11,
        FLAG_MASKED = 1 << 13,
};

static uint16_t u16(const unsigned char *p)
{
        return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t u32(const unsigned char *p)
{
        return (uint32_t)u16(p) | (uint32_t)u16(p + 2) << 16;
}

static uint64_t u64(const unsigned char *p)
{
        return (uint64_t)u32(p) | (uint64_t)u32(p + 4) << 32;
}

static int no_zip(struct fault *f, const char *what)
{
        return fault_set(f, UNPACK_UNSAFE, "it is not a well-formed zip file: %s", what);
}

static int bad(struct fault *f, const struct zip_member *m, const char *what)
{
        char quote[FAULT_QUOTE_SIZE];

        return fault_set(f, UNPACK_UNSAFE, "the member %s %s", fault_quote(m->name, m->n, quote), what);
}

static int read_at(int fd, uint64_t at, void *ret, size_t n)
{
        for (size_t done = 0; done < n;) {
                ssize_t r = pread(fd, (char *)ret + done, n - done, (off_t)(at + done));

                if (r < 0 && errno == EINTR)
                        continue;
                if (r <= 0)
                        return rv_raise(r < 0 ? -errno : -EIO);
                done += (size_t)r;
        }
        return 0;
}

/* ---- Where the directory is ---- */

struct where {
        uint64_t at, bytes, n, end;      /* end: where it has to end */
};

static int read_end64(int fd, uint64_t end_at, struct where *w, struct fault *f)
{
        unsigned char locator[LOCATOR_BYTES], end[END64_BYTES];
        uint64_t at;
        int r;

        if (end_at < LOCATOR_BYTES + END64_BYTES)
                return no_zip(f, "it is too short for the sizes it claims");
        r = read_at(fd, end_at - LOCATOR_BYTES, locator, sizeof(locator));
        if (r < 0)
                return rv_trace(r);
        at = end_at - LOCATOR_BYTES - END64_BYTES;
        if (memcmp(locator, "PK\6\7", 4) != 0 || u32(locator + 4) != 0 || u32(locator + 16) != 1 || u64(locator + 8) != at)
                return no_zip(f, "its end does not tell where its directory is");
        r = read_at(fd, at, end, sizeof(end));
        if (r < 0)
                return rv_trace(r);
        if (memcmp(end, "PK\6\6", 4) != 0 || u64(end + 4) != END64_BYTES - 12 || u32(end + 16) || u32(end + 20) ||
                u64(end + 24) != u64(end + 32))
                return no_zip(f, "its end does not tell where its directory is");
        *w = (struct where){ u64(end + 48), u64(end + 40), u64(end + 32), at };
        return 0;
}

/* The record at the end, whose comment has to reach to the end of the file. */
static int find_end(int fd, uint64_t file_bytes, struct where *w, struct fault *f)
{
        static unsigned char tail[END_BYTES + COMMENT_BYTES_MAX];
        size_t n = (size_t)RV_MIN(file_bytes, (uint64_t)sizeof(tail)), found = n;
        const unsigned char *e;
        uint64_t at;
        int r;

        if (n < END_BYTES)
                return no_zip(f, "it is too short");
        r = read_at(fd, file_bytes - n, tail, n);
        if (r < 0)
                return rv_trace(r);
        /* The last that there is, as most readers take it; no earlier one may reach to the end as well. */
        for (size_t i = n - END_BYTES + 1; i-- > 0;) {
                if (memcmp(tail + i, "PK\5\6", 4) != 0)
                        continue;
                if (found != n && i + END_BYTES + u16(tail + i + 20) == n)
                        return no_zip(f, "it has two ends, so that it has two readings");
                found = found == n ? i : found;
        }
        if (found == n)
                return no_zip(f, "it has no directory at its end");
        e = tail + found;
        if (found + END_BYTES + u16(e + 20) != n)
                return no_zip(f, "something follows its end");
        if (u16(e + 4) || u16(e + 6) || u16(e + 8) != u16(e + 10))
                return no_zip(f, "it is one part of several");
        at = file_bytes - n + found;
        *w = (struct where){ u32(e + 16), u32(e + 12), u16(e + 10), at };
        if (w->at == UINT32_MAX || w->bytes == UINT32_MAX || w->n == UINT16_MAX)
                return read_end64(fd, at, w, f);
        return 0;
}

static int find_directory(int fd, uint64_t file_bytes, struct where *w, struct fault *f)
{
        int r = find_end(fd, file_bytes, w, f);

        if (r)
                return r < 0 ? rv_trace(r) : r;
        if (w->n > ZIP_MEMBERS_MAX)
                return fault_set(f, UNPACK_UNSAFE, "it has more than 200000 members");
        if (w->bytes > DIRECTORY_BYTES_MAX)
                return no_zip(f, "its directory is too large");
        if (w->bytes < w->n * CENTRAL_BYTES || w->at > w->end || w->end - w->at != w->bytes)
                return no_zip(f, "its directory does not end where it should, so that there may be another");
        return 0;
}

/* ---- Its entries ---- */

/*
 * The numbers that were too large for their fields, in the order of the fields. Absent is fine where none is; @extra is
 * otherwise only looked at for its form.
 */
static bool read_extra(const unsigned char *extra, size_t n, uint64_t *const wide[], size_t n_wide)
{
        size_t next = 0;

        while (n >= 4) {
                size_t size = u16(extra + 2);
                const unsigned char *p = extra + 4;

                if (size > n - 4)
                        return false;
                for (size_t at = 0; u16(extra) == EXTRA_ZIP64 && next < n_wide && at + 8 <= size; at += 8)
                        *wide[next++] = u64(p + at);
                extra += 4 + size;
                n -= 4 + size;
        }
        /* Up to three bytes of padding stand at the end of some. */
        return next == n_wide;
}

static int judge_kind(const struct zip_member *m, struct fault *f)
{
        unsigned type = m->mode & 0170000u;
        bool is_directory = m->n && m->name[m->n - 1] == '/';

        if (m->flags & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED))
                return bad(f, m, "is encrypted");
        if (type == 0120000u)
                return bad(f, m, "is a symbolic link");
        if (type == 0020000u || type == 0060000u)
                return bad(f, m, "is a device");
        if (type != 0 && type != 0100000u && type != 0040000u)
                return bad(f, m, "is neither a file nor a directory");
        if (is_directory ? type == 0100000u || m->bytes : type == 0040000u)
                return bad(f, m, "is a file by one account and a directory by another");
        if (m->method != 0 && m->method != 8)
                return bad(f, m, "is compressed by another method than a wheel may use");
        if (m->method == 0 && m->bytes != m->packed_bytes)
                return bad(f, m, "has two sizes");
        for (uint32_t i = 0; !(m->flags & FLAG_UTF8) && i < m->n; i++)
                if ((unsigned char)m->name[i] >= 0x80)
                        return bad(f, m, "has a name that is neither ASCII nor marked as UTF-8");
        return name_check(m->name, is_directory ? m->n - 1 : m->n, f);
}

static int read_central(const unsigned char *p, size_t n, size_t *ret_taken, struct zip_member *m, struct fault *f)
{
        uint64_t *wide[3];
        size_t n_wide = 0, n_extra, n_comment;

        if (n < CENTRAL_BYTES || memcmp(p, "PK\1\2", 4) != 0)
                return no_zip(f, "its directory is cut off");
        m->flags = u16(p + 8);
        m->method = u16(p + 10);
        m->crc = u32(p + 16);
        m->packed_bytes = u32(p + 20);
        m->bytes = u32(p + 24);
        m->n = u16(p + 28);
        n_extra = u16(p + 30);
        n_comment = u16(p + 32);
        m->mode = u16(p + 40);
        m->at = u32(p + 42);
        *ret_taken = CENTRAL_BYTES + m->n + n_extra + n_comment;
        if (*ret_taken > n)
                return no_zip(f, "its directory is cut off");
        m->name = (const char *)p + CENTRAL_BYTES;
        if (m->bytes == UINT32_MAX)
                wide[n_wide++] = &m->bytes;
        if (m->packed_bytes == UINT32_MAX)
                wide[n_wide++] = &m->packed_bytes;
        if (m->at == UINT32_MAX)
                wide[n_wide++] = &m->at;
        if (u16(p + 34) != 0 || !read_extra(p + CENTRAL_BYTES + m->n, n_extra, wide, n_wide))
                return bad(f, m, "has a malformed entry in the directory");
        return judge_kind(m, f);
}

static int read_entries(const struct where *w, struct zip_directory *d, struct fault *f)
{
        const unsigned char *p = (const unsigned char *)d->names;
        size_t left = (size_t)w->bytes, taken = 0;
        int r;

        for (d->n = 0; d->n < w->n; d->n++) {
                r = read_central(p, left, &taken, &d->members[d->n], f);
                if (r)
                        return r;
                p += taken;
                left -= taken;
        }
        return left ? no_zip(f, "its directory is longer than its members") : 0;
}

/* ---- What stands before each member ---- */

static bool is_size_equal(const struct zip_member *m, uint64_t size, uint64_t central)
{
        return size == central || ((m->flags & FLAG_DESCRIPTOR) && size == 0);
}

static int read_local(int fd, const struct zip_member *m, uint64_t end, uint64_t *ret_end, struct fault *f)
{
        static unsigned char h[LOCAL_BYTES + 2 * UINT16_MAX];
        uint64_t packed, size, *wide[2];
        size_t n_extra, n_wide = 0;
        int r;

        if (m->at > end || end - m->at < LOCAL_BYTES)
                return bad(f, m, "does not lie within the archive");
        r = read_at(fd, m->at, h, LOCAL_BYTES);
        if (r < 0)
                return rv_trace(r);
        n_extra = u16(h + 28);
        if (memcmp(h, "PK\3\4", 4) != 0 || u16(h + 26) != m->n || end - m->at < LOCAL_BYTES + m->n + n_extra)
                return bad(f, m, "has another name where it lies than in the directory");
        r = read_at(fd, m->at + LOCAL_BYTES, h + LOCAL_BYTES, m->n + n_extra);
        if (r < 0)
                return rv_trace(r);
        if (memcmp(h + LOCAL_BYTES, m->name, m->n) != 0)
                return bad(f, m, "has another name where it lies than in the directory");
        packed = u32(h + 18);
        size = u32(h + 22);
        if (size == UINT32_MAX)
                wide[n_wide++] = &size;
        if (packed == UINT32_MAX)
                wide[n_wide++] = &packed;
        if (!read_extra(h + LOCAL_BYTES + m->n, n_extra, wide, n_wide))
                return bad(f, m, "has a malformed header");
        if (!is_size_equal(m, packed, m->packed_bytes) || !is_size_equal(m, size, m->bytes) ||
                !is_size_equal(m, u32(h + 14), m->crc))
                return bad(f, m, "has another size or checksum where it lies than in the directory");
        if (u16(h + 8) != m->method ||
                ((u16(h + 6) ^ m->flags) & (FLAG_ENCRYPTED | FLAG_DESCRIPTOR | FLAG_STRONG | FLAG_UTF8 | FLAG_MASKED)))
                return bad(f, m, "is described otherwise where it lies than in the directory");
        if (m->packed_bytes > end - m->at - LOCAL_BYTES - m->n - n_extra)
                return bad(f, m, "does not lie within the archive");
        *ret_end = m->at + LOCAL_BYTES + m->n + n_extra + m->packed_bytes;
        return 0;
}

static int compare_places(const void *a, const void *b)
{
        const struct zip_member *x = a, *y = b;

        return x->at < y->at ? -1 : x->at > y->at;
}

/* Side by side from the first byte to the directory; behind the data there may be the sizes again. */
static int judge_places(int fd, struct zip_directory *d, uint64_t end, struct fault *f)
{
        uint64_t at = 0, gap;
        int r;

        if (d->n)
                qsort(d->members, d->n, sizeof(*d->members), compare_places);
        if (d->n == 0 ? end != 0 : d->members[0].at != 0)
                return no_zip(f, "something stands before its first member");
        for (size_t i = 0; i < d->n; i++) {
                uint64_t next = i + 1 < d->n ? d->members[i + 1].at : end;

                r = read_local(fd, &d->members[i], end, &at, f);
                if (r)
                        return r < 0 ? rv_trace(r) : r;
                if (at > next)
                        return bad(f, &d->members[i], "overlaps the next one");
                gap = next - at;
                if (d->members[i].flags & FLAG_DESCRIPTOR ? gap != 12 && gap != 16 && gap != 20 && gap != 24 : gap != 0)
                        return bad(f, &d->members[i], "is followed by bytes that belong to no member");
        }
        return 0;
}

int zip_directory_read(int fd, uint64_t file_bytes, struct zip_directory *ret, struct fault *f)
{
        struct where w = { 0 };
        int r = find_directory(fd, file_bytes, &w, f);

        if (r)
                return r < 0 ? rv_trace(r) : r;
        ret->names = malloc((size_t)w.bytes + 1);
        ret->members = calloc((size_t)w.n + 1, sizeof(*ret->members));
        if (!ret->names || !ret->members)
                return rv_raise(-ENOMEM);
        r = read_at(fd, w.at, ret->names, (size_t)w.bytes);
        if (r == 0)
                r = read_entries(&w, ret, f);
        if (r == 0)
                r = judge_places(fd, ret, w.at, f);
        return r < 0 ? rv_trace(r) : r;
}

void zip_directory_fini(struct zip_directory *d)
{
        free(d->members);
        free(d->names);
        *d = (struct zip_directory){ 0 };
}
