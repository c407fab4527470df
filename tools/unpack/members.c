#include "members.h"

#include "name.h"
#include "zipdir.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_BYTES ((size_t)128 << 10)

struct walk {
        struct archive *archive;
        const struct visitor *visitor;
        enum member_format format;
        struct zip_directory zip;
        struct name_table names;
        uint64_t file_bytes;
        size_t n_members;
        struct member_counts counts;
        struct fault *fault;
        char *block;
};

static void walk_fini(struct walk *w)
{
        archive_read_free(w->archive);
        zip_directory_fini(&w->zip);
        name_table_fini(&w->names);
        free(w->block);
}

static int refuse(struct walk *w, const struct member *m, const char *what)
{
        char quote[FAULT_QUOTE_SIZE];

        return fault_set(w->fault, UNPACK_UNSAFE, "the member %s %s", fault_quote(m->path, m->n, quote), what);
}

/* What libarchive says of bytes that it cannot read. */
static int unreadable(struct walk *w)
{
        const char *text = archive_error_string(w->archive);
        char quote[FAULT_QUOTE_SIZE];

        if (archive_errno(w->archive) == ENOMEM)
                return rv_raise(-ENOMEM);
        text = text ? text : "";
        return fault_set(w->fault, UNPACK_UNSAFE, "it is not a well-formed %s: %s", w->format == MEMBER_WHEEL ? "zip file" : "gzipped tar archive", fault_quote(text, strlen(text), quote));
}

/* A bound on everything that comes out of the compressed bytes, headers and padding of tar included. */
static int judge_amount(struct walk *w, uint64_t bytes)
{
        if (bytes > MEMBER_UNPACKED_BYTES_MAX)
                return fault_set(w->fault, UNPACK_UNSAFE, "it is more than 8 GiB unpacked");
        if (bytes > MEMBER_RATIO_FREE_BYTES && bytes / MEMBER_RATIO_MAX > w->file_bytes)
                return fault_set(w->fault, UNPACK_UNSAFE, "it is more than 200 times its size when unpacked");
        return 0;
}

/* ---- One member ---- */

static const char *judge_type(struct archive_entry *e)
{
        if (archive_entry_hardlink(e))
                return "is a hard link";
        switch (archive_entry_filetype(e)) {
        case AE_IFLNK: return "is a symbolic link";
        case AE_IFCHR:
        case AE_IFBLK: return "is a device";
        case AE_IFIFO: return "is a FIFO";
        case AE_IFREG:
        case AE_IFDIR: break;
        default: return "is neither a file nor a directory";
        }
        return archive_entry_is_encrypted(e) ? "is encrypted" : NULL;
}

/* Both readers have to have seen the same; the type is the directory's, which installers go by. */
static int compare_with_zip(struct walk *w, struct archive_entry *e, struct member *m)
{
        const struct zip_member *z = &w->zip.members[w->n_members];

        if (w->n_members >= w->zip.n || z->n != m->n || memcmp(z->name, m->path, m->n) != 0 ||
                (archive_entry_size_is_set(e) && (uint64_t)archive_entry_size(e) != z->bytes))
                return refuse(w, m, "is not what the directory says");
        m->is_directory = z->name[z->n - 1] == '/';
        m->is_executable = (z->mode & 0111) && (z->mode & 0170000) != 0040000;
        m->bytes = z->bytes;
        return 0;
}

static int judge(struct walk *w, struct archive_entry *e, struct member *m)
{
        struct name_entry *clash;
        const char *path = archive_entry_pathname(e), *what;
        int r = 0;

        if (!path)
                return fault_set(w->fault, UNPACK_UNSAFE, "a member has a name that is not UTF-8");
        *m = (struct member){ .path = path, .n = strlen(path) };
        what = judge_type(e);
        if (what)
                return refuse(w, m, what);
        if (w->format == MEMBER_WHEEL) {
                r = compare_with_zip(w, e, m);
        } else {
                m->is_directory = archive_entry_filetype(e) == AE_IFDIR;
                m->is_executable = archive_entry_mode(e) & 0111;
                m->bytes = (uint64_t)RV_MAX(archive_entry_size(e), 0);
        }
        if (r)
                return r;
        if (m->is_directory && m->n > 1 && m->path[m->n - 1] == '/')
                m->n--;
        r = name_check(m->path, m->n, w->fault);
        if (r)
                return r;
        r = name_add(&w->names, m->path, m->n, m->is_directory ? NAME_DIRECTORY : NAME_FILE, 0, &clash);
        return r > 0 ? name_clash_fault(clash, m->path, m->n, m->is_directory ? NAME_DIRECTORY : NAME_FILE, w->fault)
                     : r;
}

static int show_data(struct walk *w, const struct member *m)
{
        const struct visitor *v = w->visitor;
        uint64_t done = 0;
        la_ssize_t n;
        int r;

        while ((n = archive_read_data(w->archive, w->block, BLOCK_BYTES)) > 0) {
                done += (uint64_t)n;
                if (done > m->bytes)
                        return refuse(w, m, "is longer than it says");
                r = judge_amount(w, RV_MAX(w->counts.unpacked_bytes - m->bytes + done,
                        w->format == MEMBER_TARBALL ? (uint64_t)archive_filter_bytes(w->archive, 0) : 0));
                if (r)
                        return r;
                r = v->data(v->ctx, w->block, (size_t)n, w->fault);
                if (r)
                        return r;
        }
        if (n < 0)
                return unreadable(w);
        return done == m->bytes ? 0 : refuse(w, m, "is shorter than it says");
}

static int show(struct walk *w, struct archive_entry *e)
{
        const struct visitor *v = w->visitor;
        _cleanup_(rv_freep) char *path = NULL;
        struct member m;
        int r = judge(w, e, &m);

        if (r)
                return r;
        if (++w->n_members > MEMBERS_MAX)
                return fault_set(w->fault, UNPACK_UNSAFE, "it has more than 200000 members");
        w->counts.n_files += !m.is_directory;
        if (m.bytes > MEMBER_UNPACKED_BYTES_MAX)
                return judge_amount(w, m.bytes);
        w->counts.unpacked_bytes += m.bytes;
        r = judge_amount(w, w->counts.unpacked_bytes);
        if (r)
                return r;
        path = strndup(m.path, m.n);
        if (!path)
                return rv_raise(-ENOMEM);
        m.path = path;
        r = v->begin(v->ctx, &m, w->fault);
        if (r == MEMBERS_E_SKIP)
                return 0;
        if (r == 0 && !m.is_directory)
                r = show_data(w, &m);
        return r == 0 ? v->end(v->ctx, w->fault) : r;
}

/* ---- All of them ---- */

static int open_archive(struct walk *w, int fd)
{
        int r;

        w->archive = archive_read_new();
        w->block = malloc(BLOCK_BYTES);
        if (!w->archive || !w->block)
                return rv_raise(-ENOMEM);
        if (w->format == MEMBER_WHEEL)
                r = archive_read_support_format_zip_seekable(w->archive);
        else
                r = RV_MIN(archive_read_support_filter_gzip(w->archive), archive_read_support_format_tar(w->archive));
        if (r != ARCHIVE_OK || lseek(fd, 0, SEEK_SET) < 0)
                return rv_raise(r != ARCHIVE_OK ? -ENOTSUP : -errno);
        return archive_read_open_fd(w->archive, fd, BLOCK_BYTES) == ARCHIVE_OK ? 0 : unreadable(w);
}

static int show_all(struct walk *w)
{
        struct archive_entry *e;
        int r;

        while ((r = archive_read_next_header(w->archive, &e)) == ARCHIVE_OK) {
                r = judge_amount(w, w->format == MEMBER_TARBALL ? (uint64_t)archive_filter_bytes(w->archive, 0) : 0);
                if (r == 0)
                        r = show(w, e);
                if (r)
                        return r < 0 ? rv_trace(r) : r;
        }
        if (r != ARCHIVE_EOF)
                return unreadable(w);
        if (w->format == MEMBER_WHEEL && w->n_members != w->zip.n)
                return fault_set(w->fault, UNPACK_UNSAFE, "it has two readings: two readers find different members");
        /* libarchive takes bytes that are not compressed for an archive of their own. */
        if (w->format == MEMBER_TARBALL && archive_filter_code(w->archive, 0) != ARCHIVE_FILTER_GZIP)
                return fault_set(w->fault, UNPACK_UNSAFE, "it is not a gzipped tar archive");
        return w->n_members ? 0 : fault_set(w->fault, UNPACK_UNSAFE, "it has no members");
}

int members_walk(int fd, enum member_format format, const struct visitor *v, struct member_counts *ret, struct fault *f)
{
        _cleanup_(walk_fini) struct walk w = {
                .visitor = v, .format = format, .names = { .is_folding = true }, .fault = f
        };
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return rv_raise(-errno);
        if (!S_ISREG(st.st_mode))
                return rv_raise(-EINVAL);
        w.file_bytes = (uint64_t)st.st_size;
        r = format == MEMBER_WHEEL ? zip_directory_read(fd, w.file_bytes, &w.zip, f) : 0;
        if (r == 0)
                r = open_archive(&w, fd);
        if (r == 0)
                r = show_all(&w);
        if (r)
                return r < 0 ? rv_trace(r) : r;
        if (ret)
                *ret = w.counts;
        return 0;
}
