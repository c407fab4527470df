#include "audit/log_private.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_WAIT_US (UINT64_C(5) * 1000 * 1000)
#define LOCK_PAUSE_MAX_US 2000

static const char *advice(int r)
{
        switch (r) {
        case -EACCES:
        case -EPERM:
                return "; the state directory has to belong to the user that reeve runs as";
        case -EROFS:
                return "; name a writable directory as state_dir in the configuration";
        case -ENOSPC:
        case -EDQUOT:
                return "; make room, or name another directory as state_dir in the configuration";
        case -ETIMEDOUT:
                return "; another reeve holds it: see whether that process is stopped";
        default:
                return "";
        }
}

int rv_log_fail(const struct rv_log *log, struct rv_error *err, int r, const char *name, const char *what)
{
        return rv_error_set(err, r, "%s%s%s: %s: %s%s", log->audit_path, *name ? "/" : "", name, what, strerror(-r), advice(r));
}

int rv_log_check(const struct rv_log *log, struct rv_error *err)
{
        return log->broken ? rv_log_fail(log, err, log->broken, log->segment, "an earlier sync of the log failed") : 0;
}

int rv_log_lock(struct rv_log *log, struct rv_error *err)
{
        uint64_t give_up_us = rv_boot_us() + log->lock_wait_us;
        useconds_t pause_us = 50;
        int r;

        r = rv_log_check(log, err);
        if (r < 0)
                return rv_trace(r);
        for (;;) {
                if (flock(log->lock_fd, LOCK_EX | LOCK_NB) == 0)
                        return 0;
                if (errno != EWOULDBLOCK && errno != EINTR)
                        return rv_log_fail(log, err, rv_raise(-errno), "lock", "cannot lock the log");
                /* Asked again and again, as flock() knows no deadline; a writer takes some 0.05 ms. */
                if (rv_boot_us() > give_up_us)
                        return rv_log_fail(log, err, rv_raise(-ETIMEDOUT), "lock", "cannot lock the log in time");
                usleep(pause_us);
                pause_us = RV_MIN(pause_us * 2, (useconds_t)LOCK_PAUSE_MAX_US);
        }
}

void rv_log_unlock(struct rv_log *log)
{
        flock(log->lock_fd, LOCK_UN);
}

static int random_hex(size_t n, char *ret)
{
        uint8_t bytes[RV_LOG_SECRET_BYTES];

        if (getrandom(bytes, n, 0) != (ssize_t)n)
                return rv_raise(-EIO);
        rv_hex(bytes, n, ret);
        explicit_bzero(bytes, sizeof(bytes));
        return 0;
}

static bool is_hex(const char *s, size_t n)
{
        return strspn(s, "0123456789abcdef") == n && s[n] == 0;
}

/* "STATE/NAME: WHAT: the error's text; do this". */
static int fail_on(const struct rv_log *log, struct rv_error *err, int r, const char *name, const char *what)
{
        return rv_error_set(err, r, "%s%s%s: %s: %s%s", log->state_dir, *name ? "/" : "", name, what, strerror(-r), advice(r));
}

/* One line of @n_hex digits from STATE/@name. 1; 0 if there is no such file; -errno. */
static int read_hex(struct rv_log *log, const char *name, size_t n_hex, bool is_secret, char *ret, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        struct stat st;
        char text[80];
        ssize_t n;

        fd = openat(log->state_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 && errno == ENOENT)
                return 0;
        if (fd < 0 || fstat(fd, &st) < 0)
                return fail_on(log, err, rv_raise(-errno), name, "cannot open");
        if (is_secret && (st.st_mode & 077))
                return rv_error_set(err, rv_raise(-EPERM),
                                    "%s/%s: is open to other users (mode %03o), who could then find out what records hide; chmod it to 600",
                                    log->state_dir, name, st.st_mode & 0777);
        n = read(fd, text, sizeof(text) - 1);
        if (n < 0)
                return fail_on(log, err, rv_raise(-errno), name, "cannot read");
        text[n] = 0;
        if (n && text[n - 1] == '\n')
                text[n - 1] = 0;
        if (!is_hex(text, n_hex))
                return rv_error_set(err, rv_raise(-EBADMSG), "%s/%s: does not hold %zu hex digits; restore it from a copy", log->state_dir,
                                    name, n_hex);
        memcpy(ret, text, n_hex + 1);
        explicit_bzero(text, sizeof(text));
        return 1;
}

static int write_hex(struct rv_log *log, const char *name, size_t n_hex, char *ret, struct rv_error *err)
{
        char text[80];
        int r;

        r = random_hex(n_hex / 2, ret);
        if (r < 0)
                return fail_on(log, err, r, name, "no randomness from the kernel");
        snprintf(text, sizeof(text), "%s\n", ret);
        r = rv_write_file_at(log->state_fd, name, text, n_hex + 1, 0600, true);
        explicit_bzero(text, sizeof(text));
        return r < 0 ? fail_on(log, err, r, name, "cannot write") : 0;
}

/* The names of new files have to survive a crash as well as their bytes. */
static int sync_directory(struct rv_log *log, const char *name, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;

        fd = openat(log->state_fd, *name ? name : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fsync(fd) < 0)
                return fail_on(log, err, rv_raise(-errno), name, "cannot sync the directory");
        return 0;
}

/* 1; 0 if there is none; -errno. */
static int read_secret(struct rv_log *log, struct rv_error *err)
{
        char text[2 * RV_LOG_SECRET_BYTES + 1];
        struct stat st;
        int r;

        if (fstatat(log->state_fd, RV_LOG_SECRET_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0) {
                log->secret_inode = st.st_ino;
                log->secret_ctime = st.st_ctim;
        }
        r = read_hex(log, RV_LOG_SECRET_NAME, 2 * RV_LOG_SECRET_BYTES, true, text, err);
        for (size_t i = 0; r == 1 && i < RV_LOG_SECRET_BYTES; i++) {
                const char digits[3] = { text[2 * i], text[2 * i + 1], 0 };

                log->secret[i] = (uint8_t)strtoul(digits, NULL, 16);
        }
        explicit_bzero(text, sizeof(text));
        return rv_trace(r);
}

int rv_log_renew_secret(struct rv_log *log, struct rv_error *err)
{
        struct stat st;
        int r;

        if (fstatat(log->state_fd, RV_LOG_SECRET_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                st.st_ino == log->secret_inode && st.st_ctim.tv_sec == log->secret_ctime.tv_sec &&
                st.st_ctim.tv_nsec == log->secret_ctime.tv_nsec)
                return 0;
        r = read_secret(log, err);
        if (r == 0)
                return fail_on(log, err, rv_raise(-ENOENT), RV_LOG_SECRET_NAME, "was removed while in use");
        return r < 0 ? rv_trace(r) : 0;
}

/* 1 if both the id and the secret are there and read, 0 if one is missing. */
static int read_identity(struct rv_log *log, bool *ret_has_secret, struct rv_error *err)
{
        int r_id, r_secret;

        r_id = read_hex(log, "audit/id", RV_LOG_ID_SIZE - 1, false, log->id, err);
        if (r_id < 0)
                return rv_trace(r_id);
        r_secret = read_secret(log, err);
        if (r_secret < 0)
                return rv_trace(r_secret);
        *ret_has_secret = r_secret == 1;
        return r_id && r_secret;
}

static int make_directory(struct rv_log *log, const char *name, struct rv_error *err)
{
        if (mkdirat(log->state_fd, name, 0700) < 0 && errno != EEXIST)
                return fail_on(log, err, rv_raise(-errno), name, "cannot make the directory");
        return 0;
}

int rv_log_make_secret(struct rv_log *log, struct rv_error *err)
{
        char text[2 * RV_LOG_SECRET_BYTES + 1];
        int r;

        r = make_directory(log, "keys", err);
        if (r == 0)
                r = write_hex(log, RV_LOG_SECRET_NAME, 2 * RV_LOG_SECRET_BYTES, text, err);
        explicit_bzero(text, sizeof(text));
        if (r == 0)
                r = sync_directory(log, "keys", err);
        if (r == 0)
                r = read_secret(log, err);
        return r < 0 ? rv_trace(r) : 0;
}

/* Locked. The id comes last: where it is, all of it is. */
static int make_identity(struct rv_log *log, struct rv_error *err)
{
        char segment[RV_LOG_SEGMENT_NAME_SIZE];
        bool has_secret = false;
        int r;

        r = read_identity(log, &has_secret, err);
        if (r != 0)
                return r < 0 ? rv_trace(r) : 0;
        r = rv_segments_newest(log->audit_fd, log->audit_path, NULL, segment, err);
        if (r < 0)
                return rv_trace(r);
        if (r > 0)
                return rv_error_set(err, rv_raise(-EBADMSG),
                                    "%s/%s: is missing, although there are records in audit/; restore it from a copy, or %s",
                                    log->state_dir, has_secret ? "audit/id" : RV_LOG_SECRET_NAME,
                                    has_secret ? "move audit/ away to begin a new log" : "continue the log with a new one by `reeve audit erase --yes`");
        r = has_secret ? sync_directory(log, "keys", err) : rv_log_make_secret(log, err);
        if (r == 0)
                r = write_hex(log, "audit/id", RV_LOG_ID_SIZE - 1, log->id, err);
        if (r == 0)
                r = sync_directory(log, "audit", err);
        if (r == 0)
                r = sync_directory(log, "", err);
        if (r < 0)
                return rv_trace(r);
        r = read_identity(log, &has_secret, err);
        return r < 0 ? rv_trace(r) : 0;
}

static int open_files(struct rv_log *log, struct rv_error *err)
{
        int r;

        log->audit_fd = openat(log->state_fd, "audit", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (log->audit_fd < 0 && errno == ENOENT) {
                r = make_directory(log, "audit", err);
                if (r < 0)
                        return rv_trace(r);
                log->audit_fd = openat(log->state_fd, "audit", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
        if (log->audit_fd < 0)
                return rv_log_fail(log, err, rv_raise(-errno), "", "cannot open the directory");
        log->lock_fd = openat(log->audit_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (log->lock_fd < 0)
                return rv_log_fail(log, err, rv_raise(-errno), "lock", "cannot open for writing");
        return 0;
}

static int open_identity(struct rv_log *log, struct rv_error *err)
{
        bool has_secret = false;
        int r;

        r = read_identity(log, &has_secret, err);
        if (r != 0)
                return r < 0 ? rv_trace(r) : 0;
        r = make_directory(log, "keys", err);
        if (r == 0)
                r = rv_log_lock(log, err);
        if (r < 0)
                return rv_trace(r);
        r = make_identity(log, err);
        rv_log_unlock(log);
        return rv_trace(r);
}

int rv_log_make_instance(struct rv_log *log, struct rv_error *err)
{
        int r = random_hex((RV_LOG_ID_SIZE - 1) / 2, log->instance);

        return r < 0 ? fail_on(log, err, r, "audit", "no randomness from the kernel") : 0;
}

/* Of a log that is there. */
static int read_id(struct rv_log *log, struct rv_error *err)
{
        int r = read_hex(log, "audit/id", RV_LOG_ID_SIZE - 1, false, log->id, err);

        return r == 0 ? rv_error_set(err, rv_raise(-ENOENT), "%s: there is no log (no audit/id)", log->state_dir) : RV_MIN(r, 0);
}

static int open_log(int state_fd, const char *state_dir, bool needs_secret, struct rv_log **ret, struct rv_error *err)
{
        _cleanup_(rv_log_closep) struct rv_log *log = NULL;
        int r;

        log = calloc(1, sizeof(*log));
        if (log) {
                log->state_fd = log->audit_fd = log->lock_fd = log->segment_fd = log->live_fd = log->commit_fd = -EBADF;
                log->lock_wait_us = LOCK_WAIT_US;
                log->segment_max = RV_LOG_SEGMENT_MAX;
                log->state_dir = strdup(state_dir);
                if (asprintf(&log->audit_path, "%s/audit", state_dir) < 0)
                        log->audit_path = NULL;
        }
        if (!log || !log->state_dir || !log->audit_path)
                return rv_error_set(err, rv_raise(-ENOMEM), "%s: out of memory opening the log", state_dir);
        log->state_fd = fcntl(state_fd, F_DUPFD_CLOEXEC, 3);
        if (log->state_fd < 0)
                return fail_on(log, err, rv_raise(-errno), "", "cannot use the directory");
        r = needs_secret ? 0 : read_id(log, err);
        if (r == 0)
                r = open_files(log, err);
        if (r == 0 && needs_secret)
                r = open_identity(log, err);
        if (r < 0)
                return rv_trace(r);
        r = rv_log_make_instance(log, err);
        if (r < 0)
                return rv_trace(r);
        *ret = rv_take(&log);
        return 0;
}

int rv_log_open_at(int state_fd, const char *state_dir, struct rv_log **ret, struct rv_error *err)
{
        return rv_trace(open_log(state_fd, state_dir, true, ret, err));
}

int rv_log_open_without_secret(int state_fd, const char *state_dir, struct rv_log **ret, struct rv_error *err)
{
        return rv_trace(open_log(state_fd, state_dir, false, ret, err));
}

int rv_log_open(const char *state_dir, struct rv_log **ret, struct rv_error *err)
{
        _cleanup_(rv_closep) int state_fd = -EBADF;
        int r;

        state_fd = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (state_fd < 0 && errno == ENOENT) {
                r = rv_mkdir_p(state_dir, 0700);
                if (r < 0)
                        return rv_error_set(err, rv_trace(r), "%s: cannot make the directory: %s%s", state_dir, strerror(-r), advice(r));
                state_fd = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        }
        if (state_fd < 0) {
                r = rv_raise(-errno);
                return rv_error_set(err, r, "%s: cannot open the directory: %s%s", state_dir, strerror(-r), advice(r));
        }
        return rv_trace(rv_log_open_at(state_fd, state_dir, ret, err));
}

void rv_log_close(struct rv_log *log)
{
        if (!log)
                return;
        rv_log_delist(log);
        rv_commit_close(log);
        rv_close(log->segment_fd);
        rv_close(log->lock_fd);
        rv_close(log->audit_fd);
        rv_close(log->state_fd);
        explicit_bzero(log->secret, sizeof(log->secret));
        free(log->redaction);
        free(log->audit_path);
        free(log->state_dir);
        free(log);
}

void rv_log_set_segment_max(struct rv_log *log, uint64_t bytes)
{
        log->segment_max = bytes;
}

const char *rv_log_id(const struct rv_log *log)
{
        return log->id;
}

const char *rv_log_instance(const struct rv_log *log)
{
        return log->instance;
}

void rv_log_hmac(const struct rv_log *log, const void *data, size_t n, char ret_hex[65])
{
        uint8_t mac[RV_SHA256_SIZE];

        rv_hmac_sha256(log->secret, sizeof(log->secret), data, n, mac);
        rv_hex(mac, sizeof(mac), ret_hex);
}
