/*
 * Records that say "from here on", written only if something changed.
 *
 * What changed is judged against the newest such record of the same kind, tenant and role, and where that
 * stands is kept in a file of audit/last/, so that it need not be looked for: segment, offset, length
 * and SHA-256 of the line, and its digest. The file is a cache. It is believed only if the line is there
 * as described, and it is removed, durably, before a newer record is written: if it is there, no crash
 * can have put a newer record behind its back. Without it the log is read through.
 */
#include "audit/lines.h"
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
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };
        char sha256[RV_SHA256_HEX_SIZE];

        if (rv_log_read_line(log, note->segment, note->spot.offset, note->spot.n, &line, NULL) <= 0)
                return false;
        rv_sha256_hex(line.data, line.size, sha256);
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
        const struct rv_log *log, struct note *note, const struct rv_lines *lines, const char *line, size_t n)
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
        memcpy(note->segment, lines->segment, sizeof(note->segment));
        note->spot.offset = lines->offset;
        note->spot.n = n;
        rv_sha256_hex(line, n, note->spot.sha256);
        note->is_found = true;
}

static void note_place(struct note *note, const struct rv_lines *lines)
{
        memcpy(note->read_segment, lines->segment, sizeof(note->read_segment));
        note->read_to = lines->next_offset;
}

/* From the newest segment back to the first that holds a record of the kind. */
static int find_backwards(struct rv_log *log, struct note *note, struct rv_error *err)
{
        _cleanup_(rv_segments_fini) struct rv_segments segments = { 0 };
        _cleanup_(rv_lines_close) struct rv_lines lines;
        const char *line;
        size_t n;
        int r;

        rv_lines_begin(&lines, log->audit_fd, log->audit_path);
        r = rv_segments_list(log->audit_fd, log->audit_path, "", &segments, err);
        for (size_t i = segments.n; r == 0 && i-- && !note->is_found;) {
                r = rv_lines_go(&lines, segments.all[i].name, 0, err);
                while (r > 0 && (r = rv_lines_in_segment(&lines, &line, &n, err)) == 1)
                        look_at(log, note, &lines, line, n);
                if (r == RV_LINES_E_LONG)
                        r = rv_lines_fail_long(&lines, err);
                if (i == segments.n - 1)
                        note_place(note, &lines);
        }
        return rv_trace(r);
}

/*
 * Reads the log through for the newest record of the kind; called again, only what was appended since.
 * So the long part needs no lock: nothing that ends in a newline is ever taken back.
 */
static int find_last(struct rv_log *log, struct note *note, struct rv_error *err)
{
        _cleanup_(rv_lines_close) struct rv_lines lines = { .fd = -EBADF };
        const char *line;
        size_t n;
        int r;

        if (!*note->read_segment)
                return rv_trace(find_backwards(log, note, err));
        r = rv_lines_begin_at(&lines, log->audit_fd, log->audit_path, note->read_segment, note->read_to, err);
        while (r == 0 && (r = rv_lines_next(&lines, &line, &n, err)) > 0) {
                look_at(log, note, &lines, line, n);
                r = 0;
        }
        if (r == 0)
                note_place(note, &lines);
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
