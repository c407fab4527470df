#include "audit/commit.h"

#include "audit/log_private.h"
#include "base/clock.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define XFS_MAGIC 0x58465342
#define NAP_NS 20000000                  /* a leader that died wakes nobody */

#define get(field) __atomic_load_n(&(field), __ATOMIC_SEQ_CST)
#define put(field, value) __atomic_store_n(&(field), (value), __ATOMIC_SEQ_CST)

/* ---- The page ---- */

static bool is_overwritten_in_place(int fd)
{
        struct statfs fs;

        return fstatfs(fd, &fs) == 0 && (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_MAGIC);
}

/* Bytes are written, as a hole would need room when it is touched through the mapping. */
static int make_page(struct rv_log *log)
{
        static const char page[RV_COMMIT_BYTES] = RV_COMMIT_MAGIC;
        _cleanup_(rv_closep) int fd = -EBADF;

        if (unlinkat(log->audit_fd, RV_COMMIT_NAME, 0) < 0 && errno != ENOENT)
                return rv_raise(-errno);
        fd = openat(log->audit_fd, RV_COMMIT_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return rv_raise(-errno);
        if (pwrite(fd, page, sizeof(page), 0) != sizeof(page)) {
                (void)unlinkat(log->audit_fd, RV_COMMIT_NAME, 0);
                return rv_raise(-ENOSPC);
        }
        return rv_take_fd(&fd);
}

static int open_page(struct rv_log *log)
{
        _cleanup_(rv_closep) int fd = openat(
                log->audit_fd, RV_COMMIT_NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        struct rv_commit seen;
        struct stat st;

        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == RV_COMMIT_BYTES &&
                pread(fd, &seen, sizeof(seen), 0) == sizeof(seen) &&
                memcmp(seen.magic, RV_COMMIT_MAGIC, sizeof(seen.magic)) == 0 && !seen.failed)
                return rv_take_fd(&fd);
        return make_page(log);
}

static void open_commit(struct rv_log *log)
{
        void *page;

        log->is_commit_tried = true;
        if (!is_overwritten_in_place(log->audit_fd))
                return;
        log->commit_fd = open_page(log);
        if (log->commit_fd < 0)
                return;
        page = mmap(NULL, RV_COMMIT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, log->commit_fd, 0);
        if (page != MAP_FAILED)
                log->commit = page;
        else
                log->commit_fd = rv_close(log->commit_fd);
}

void rv_commit_follow(struct rv_log *log)
{
        struct rv_commit *c;

        if (!log->is_commit_tried)
                open_commit(log);
        c = log->commit;
        if (!c)
                return;
        if (get(c->synced) > log->next_seq)
                put(c->synced, log->next_seq);
        if (get(c->segment) != log->segment_first)
                put(c->segment, log->segment_first);
        if (get(c->appended) != log->next_seq)
                put(c->appended, log->next_seq);
}

void rv_commit_appended(struct rv_log *log)
{
        if (log->commit)
                put(log->commit->appended, log->next_seq);
}

void rv_commit_synced(struct rv_log *log, uint64_t n)
{
        uint64_t seen;

        if (!log->commit)
                return;
        seen = get(log->commit->synced);
        while (seen < n &&
                !__atomic_compare_exchange_n(&log->commit->synced, &seen, n, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                ;
}

void rv_commit_failed(struct rv_log *log)
{
        if (log->commit)
                put(log->commit->failed, 1);
}

void rv_commit_close(struct rv_log *log)
{
        if (log->commit)
                (void)munmap(log->commit, RV_COMMIT_BYTES);
        log->commit = NULL;
        log->commit_fd = rv_close(log->commit_fd);
}

/* ---- Syncing ---- */

/* Those who wait look again: at what was synced, or for a new leader. */
static void wake(struct rv_commit *c)
{
        __atomic_fetch_add(&c->tick, 1, __ATOMIC_SEQ_CST);
        (void)syscall(SYS_futex, &c->tick, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void sleep_on(struct rv_commit *c, uint32_t tick)
{
        const struct timespec nap = { .tv_nsec = NAP_NS };

        (void)syscall(SYS_futex, &c->tick, FUTEX_WAIT, tick, &nap, NULL, 0);
}

/* For ourselves, and for whoever appended before. */
static int sync_now(struct rv_log *log)
{
        struct rv_commit *c = log->commit;
        uint64_t appended = c ? get(c->appended) : 0;
        /* In this order: the number can cover records of a newer segment only if that is named by then. */
        bool is_newest = c && get(c->segment) == log->segment_first;

        if (fdatasync(log->segment_fd) < 0) {
                int r = rv_raise(-errno);

                rv_commit_failed(log);
                return r;
        }
        if (is_newest)
                rv_commit_synced(log, appended);
        return 0;
}

/* In this order: a leader publishes nothing that a failure known before belies. */
static bool is_covered(const struct rv_log *log)
{
        return get(log->commit->synced) >= log->own_end && !get(log->commit->failed);
}

static int lead(struct rv_log *log)
{
        struct rv_commit *c = log->commit;
        int r = 0;

        if (!is_covered(log)) {         /* the leader before us may have come to it */
                put(c->leader_since_us, rv_boot_us());
                r = sync_now(log);
                put(c->leader_since_us, 0);
        }
        flock(log->commit_fd, LOCK_UN);
        wake(c);                        /* after the lock is free, as one of them is to take it */
        return r;
}

static int sync_together(struct rv_log *log)
{
        struct rv_commit *c = log->commit;
        uint64_t begun_us = 0;

        for (;;) {
                uint32_t tick = get(c->tick);
                uint64_t now_us, since_us;
                bool is_led;

                if (is_covered(log))
                        return 0;
                if (get(c->failed))
                        return rv_trace(sync_now(log));
                if (flock(log->commit_fd, LOCK_EX | LOCK_NB) == 0)
                        return rv_trace(lead(log));
                is_led = errno == EWOULDBLOCK;
                now_us = rv_boot_us();
                if (!begun_us)
                        begun_us = now_us;
                since_us = get(c->leader_since_us);
                if (!since_us || since_us > begun_us)
                        since_us = begun_us;
                if (!is_led || now_us - since_us > RV_COMMIT_PATIENCE_US) {
                        int r = sync_now(log);

                        wake(c);
                        return rv_trace(r);
                }
                sleep_on(c, tick);
        }
}

int rv_log_sync(struct rv_log *log, struct rv_error *err)
{
        int r;

        r = rv_log_check(log, err);
        if (r < 0 || !log->is_dirty)
                return rv_trace(r);
        r = log->commit ? sync_together(log) : sync_now(log);
        if (r < 0) {
                /* The kernel may have dropped the pages: a second try would succeed and mean nothing. */
                log->broken = r;
                return rv_log_fail(log, err, r, log->segment, "cannot sync the log");
        }
        log->is_dirty = false;
        log->n_durable = log->own_end;
        return 0;
}
