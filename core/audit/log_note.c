/*
 * Records that say "from here on", written only if something changed.
 *
 * What changed is judged against the newest such record of the same kind, tenant and role, and where that
 * stands is kept in a file of audit/last/, so that it need not be looked for: segment, offset, length
 * and SHA-256 of the line, and its digest. The file is a cache. It is believed only if the line is there
 * as described, and it is removed, durably, before a newer record is written: if it is there, no crash
 * can have put a newer record behind its back. Without it the log is read through.
 */
#include "audit/log_private.h"
#include "audit/redact.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGEST_CHARACTERS_MAX 200

struct note {
        const char *kind, *tenant, *role;        /* tenant NULL: of all; role NULL: of none */
        char cache[64];                          /* below audit/ */
        bool is_found;
        /* The newest record that was found. */
        char segment[RV_LOG_SEGMENT_NAME_SIZE], digest[DIGEST_CHARACTERS_MAX + 1];
        struct rv_log_spot spot;
        /* How far the log was read through: up to this place; "": not at all. */
        char read_segment[RV_LOG_SEGMENT_NAME_SIZE];
        uint64_t read_to;
};

static bool is_digest(const char *s)
{
        size_t n = strlen(s);

        for (size_t i = 0; i < n; i++)
                if (s[i] <= ' ' || s[i] >= 0x7f)
                        return false;
        return n && n <= DIGEST_CHARACTERS_MAX;
}

static void init_note(
        const struct rv_log *log, struct note *note, const char *kind, const char *tenant, const char *role)
{
        *note = (struct note){ .kind = kind, .tenant = tenant, .role = role };
        if (tenant) {
                char hex[65];

                /* A tenant's name is not asked to be a file's name, and the log may have to hide it. */
                rv_log_hmac(log, tenant, strlen(tenant), hex);
                snprintf(note->cache, sizeof(note->cache), "last/%s-%.32s%s", kind, hex, role ? "-" : "");
        } else {
                snprintf(note->cache, sizeof(note->cache), "last/%s", kind);
        }
}

/* Is the line that the cache describes there? */
static bool is_line_there(struct rv_log *log, const struct note *note)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        _cleanup_(rv_freep) char *line = NULL;
        char sha256[RV_SHA256_HEX_SIZE];
        size_t n = note->spot.n + 1;

        if (note->spot.n >= RV_LOG_RECORD_BYTES_MAX)
                return false;
        line = malloc(n);
        fd = openat(log->audit_fd, note->segment, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (!line || fd < 0 || pread(fd, line, n, (off_t)note->spot.offset) != (ssize_t)n || line[n - 1] != '\n')
                return false;
        rv_sha256_hex(line, n - 1, sha256);
        return strcmp(sha256, note->spot.sha256) == 0;
}

static bool read_cache(struct rv_log *log, struct note *note)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        struct note seen = *note;
        unsigned long long offset;
        char text[512];
        ssize_t n;

        fd = openat(log->audit_fd, note->cache, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return false;
        n = read(fd, text, sizeof(text) - 1);
        if (n <= 0)
                return false;
        text[n] = 0;
        if (sscanf(text, "%26[0-9.jsonl] %llu %zu %64[0-9a-f] %200s", seen.segment, &offset, &seen.spot.n, seen.spot.sha256,
                   seen.digest) != 5)
                return false;
        seen.spot.offset = offset;
        if (!is_line_there(log, &seen))
                return false;
        seen.is_found = true;
        *note = seen;
        return true;
}

/* Without it the next call reads the log through, so a failure is no error. */
static void write_cache(struct rv_log *log, const struct note *note)
{
        char text[512];
        int n;

        n = snprintf(text, sizeof(text), "%s %llu %zu %s %s\n", note->segment, (unsigned long long)note->spot.offset, note->spot.n,
                     note->spot.sha256, note->digest);
        if (mkdirat(log->audit_fd, "last", 0700) < 0 && errno != EEXIST)
                return;
        rv_write_file_at(log->audit_fd, note->cache, text, (size_t)n, 0600, false);
}

static int remove_cache(struct rv_log *log, const struct note *note, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;

        if (unlinkat(log->audit_fd, note->cache, 0) < 0)
                return errno == ENOENT ? 0 : rv_log_fail(log, err, rv_raise(-errno), note->cache, "cannot remove");
        fd = openat(log->audit_fd, "last", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fsync(fd) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), "last", "cannot sync the directory");
        return 0;
}

/* As it stands in a record: as it is, or hidden (redact.h). */
static bool is_tenant(const struct rv_log *log, const json_t *record, const char *tenant)
{
        _cleanup_(rv_json_unrefp) json_t *plain = NULL, *hidden = NULL;
        const json_t *seen = json_object_get(record, "tenant");

        if (!tenant || !seen)
                return !tenant && !seen;
        if (json_is_string(seen))
                return strcmp(json_string_value(seen), tenant) == 0;
        plain = json_string(tenant);
        hidden = plain ? rv_log_commitment(log, plain) : NULL;
        return hidden && json_equal(hidden, seen);
}

/* Takes the line if it is a record of the kind, tenant and role looked for. */
static void look_at(
        const struct rv_log *log, struct note *note, const char *segment, const char *line, size_t n, uint64_t offset)
{
        _cleanup_(rv_json_unrefp) json_t *record = NULL;
        const char *digest, *role;
        char needle[64];
        int n_needle;

        n_needle = snprintf(needle, sizeof(needle), "\"kind\":\"%s\"", note->kind);
        if (!memmem(line, n, needle, (size_t)n_needle))
                return;
        record = rv_log_parse(line, n);
        if (strcmp(rv_json_get_string(record, "kind", ""), note->kind) != 0)
                return;
        if (!is_tenant(log, record, note->tenant))
                return;
        role = rv_json_get_string(record, "role", NULL);
        if (note->role ? !role || strcmp(role, note->role) != 0 : role != NULL)
                return;
        digest = rv_json_get_string(record, "digest", "");
        if (!is_digest(digest))
                return;
        snprintf(note->digest, sizeof(note->digest), "%s", digest);
        memcpy(note->segment, segment, sizeof(note->segment));
        note->spot.offset = offset;
        note->spot.n = n;
        rv_sha256_hex(line, n, note->spot.sha256);
        note->is_found = true;
}

static void fclosep(FILE **f)
{
        if (*f)
                fclose(*f);
}

static int read_through(struct rv_log *log, struct note *note, const char *segment, uint64_t *offset,
        struct rv_error *err)
{
        _cleanup_(fclosep) FILE *f = NULL;
        _cleanup_(rv_freep) char *line = NULL;
        size_t capacity = 0;
        ssize_t n;
        int fd;

        fd = openat(log->audit_fd, segment, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        f = fd >= 0 ? fdopen(fd, "r") : NULL;
        if (!f || fseeko(f, (off_t)*offset, SEEK_SET) < 0) {
                int r = rv_raise(-errno);

                if (!f)
                        rv_close(fd);
                return rv_log_fail(log, err, r, segment, "cannot read");
        }
        while (errno = 0, (n = getline(&line, &capacity, f)) > 0 && line[n - 1] == '\n') {
                look_at(log, note, segment, line, (size_t)n - 1, *offset);
                *offset += (uint64_t)n;
        }
        if (ferror(f) || errno == ENOMEM)
                return rv_log_fail(log, err, rv_raise(errno ? -errno : -EIO), segment, "cannot read");
        return 0;
}

/* From the newest segment back to the first that holds a record of the kind. */
static int find_backwards(struct rv_log *log, struct note *note, struct rv_error *err)
{
        char segment[RV_LOG_SEGMENT_NAME_SIZE];
        int r;

        r = rv_log_segment_before(log, NULL, segment, err);
        if (r <= 0)
                return rv_trace(r);
        memcpy(note->read_segment, segment, sizeof(segment));
        r = read_through(log, note, segment, &note->read_to, err);
        while (r == 0 && !note->is_found) {
                uint64_t offset = 0;

                r = rv_log_segment_before(log, segment, segment, err);
                if (r <= 0)
                        return rv_trace(r);
                r = read_through(log, note, segment, &offset, err);
        }
        return rv_trace(r);
}

/*
 * Reads the log through for the newest record of the kind; called again, only what was appended since.
 * So the long part needs no lock: nothing that ends in a newline is ever taken back.
 */
static int find_last(struct rv_log *log, struct note *note, struct rv_error *err)
{
        int r;

        if (!*note->read_segment)
                return rv_trace(find_backwards(log, note, err));
        r = read_through(log, note, note->read_segment, &note->read_to, err);
        while (r == 0) {
                r = rv_log_segment_after(log, note->read_segment, note->read_segment, err);
                if (r <= 0)
                        return rv_trace(r);
                note->read_to = 0;
                r = read_through(log, note, note->read_segment, &note->read_to, err);
        }
        return rv_trace(r);
}

static int append_note(struct rv_log *log, struct note *note, const char *digest, json_t *body, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *record = NULL;
        int r;

        record = body ? json_copy(body) : json_object();
        if (!record || json_object_set_new(record, "digest", json_string(digest)) < 0)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for a %s record", note->kind);
        r = remove_cache(log, note, err);
        if (r == 0)
                r = rv_log_append_locked(log, note->kind, record, &note->spot, err);
        if (r < 0)
                return rv_trace(r);
        memcpy(note->segment, log->segment, sizeof(note->segment));
        snprintf(note->digest, sizeof(note->digest), "%s", digest);
        write_cache(log, note);
        return 1;
}

static int note_change(struct rv_log *log, const char *kind, const char *digest, json_t *body, struct rv_error *err)
{
        _cleanup_(rv_log_unlockp) struct rv_log *locked = NULL;
        struct note note;
        int r;

        if (!is_digest(digest) || (body && (!json_is_object(body) || json_object_get(body, "digest"))))
                return rv_error_set(err, rv_raise(-EINVAL), "a %s record needs a digest of its own and an object", kind);
        init_note(log, &note, kind, rv_json_get_string(body, "tenant", NULL), rv_json_get_string(body, "role", NULL));
        r = rv_log_check(log, err);
        if (r < 0)
                return rv_trace(r);
        if (read_cache(log, &note) && strcmp(note.digest, digest) == 0)
                return 0;
        if (!note.is_found)
                r = find_last(log, &note, err);
        if (r == 0)
                r = rv_log_lock(log, err);
        if (r < 0)
                return rv_trace(r);
        locked = log;
        if (!read_cache(log, &note)) {
                r = find_last(log, &note, err);
                if (r < 0)
                        return rv_trace(r);
                if (note.is_found)
                        write_cache(log, &note);
        }
        if (note.is_found && strcmp(note.digest, digest) == 0)
                return 0;
        return rv_trace(append_note(log, &note, digest, body, err));
}

int rv_log_note_bundle(struct rv_log *log, const char *digest, json_t *body, struct rv_error *err)
{
        return rv_trace(note_change(log, "bundle_activated", digest, body, err));
}

int rv_log_note_config(struct rv_log *log, const char *digest, json_t *body, struct rv_error *err)
{
        return rv_trace(note_change(log, "config", digest, body, err));
}
