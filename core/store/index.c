#include "store/index_private.h"

#include "audit/record_scan.h"
#include "base/clock.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK_NAME "index.lock"
#define WAIT_MS 10000
#define WAIT_LOCKED_MS 200                    /* while all writers of the log wait */
#define LOCK_PAUSE_US 1000
#define LOCKED_BYTES ((uint64_t)4 << 20)      /* of the log, to be read while all writers wait */

int rv_index_open(struct rv_log *log, struct rv_index **ret)
{
        struct rv_index *x = calloc(1, sizeof(*x));

        if (!x)
                return rv_raise(-ENOMEM);
        x->log = log;
        x->lock_fd = -EBADF;
        *ret = x;
        return 0;
}

unsigned rv_index_n_made(const struct rv_index *x)
{
        return x->n_made;
}

/* ---- Who uses it ---- */

static int lock(struct rv_index *x, int operation, struct rv_error *err)
{
        uint64_t give_up_us = rv_boot_us() + x->wait_ms * UINT64_C(1000);

        if (x->lock_fd < 0)
                x->lock_fd = openat(x->log->state_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (x->lock_fd < 0)
                return rv__index_fail(x, err, rv_raise(-errno), "cannot open " LOCK_NAME " beside it");
        while (flock(x->lock_fd, operation | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK && errno != EINTR)
                        return rv__index_fail(x, err, rv_raise(-errno), "cannot lock " LOCK_NAME " beside it");
                if (rv_boot_us() > give_up_us)
                        return rv__index_fail(x, err, rv_raise(-ETIMEDOUT), "another reeve keeps it");
                usleep(LOCK_PAUSE_US);
        }
        return 0;
}

static void let_go(struct rv_index *x)
{
        rv__index_db_close(x);
        x->lock_fd = rv_close(x->lock_fd);
}

void rv_index_close(struct rv_index *x)
{
        if (!x)
                return;
        let_go(x);
        rv_buf_fini(&x->line);
        free(x);
}

static int ensure_open(struct rv_index *x, struct rv_error *err)
{
        int r;

        if (x->db) {
                sqlite3_busy_timeout(x->db, (int)x->wait_ms);
                return 0;
        }
        r = lock(x, LOCK_SH, err);
        return r < 0 ? r : rv__index_db_open(x, err);
}

/* Nobody else has it open when it is removed. Whoever waited to do the same finds a new one that is whole, or not. */
static int make_anew(struct rv_index *x, struct rv_error *err)
{
        int r;

        let_go(x);
        r = lock(x, LOCK_EX, err);
        if (r == 0)
                r = rv__index_db_remove(x, err);
        if (r == 0)
                r = rv__index_db_open(x, err);
        if (r == 0)
                r = lock(x, LOCK_SH, err);
        return r;
}

/* ---- Questions ---- */

static int ask(struct rv_index *x, const uint8_t key[RV_SHA256_SIZE], uint64_t max_bytes, struct rv_index_key *ret,
        struct rv_error *err)
{
        int r;

        r = ensure_open(x, err);
        if (r == 0)
                r = rv__index_fill(x, max_bytes, err);
        if (r == 0)
                r = rv__index_look_up(x, key, ret, err);
        if (r != 0)
                let_go(x);
        return r;
}

static int read_key(const char *hex, uint8_t ret[RV_SHA256_SIZE])
{
        struct rv_record_text text = { hex, strlen(hex) };

        return rv_record_hex(&text, RV_SHA256_SIZE, ret) ? 0 : rv_raise(-EINVAL);
}

int rv_index_find(
        struct rv_index *x, const char key[RV_SHA256_HEX_SIZE], struct rv_index_key *ret, struct rv_error *err)
{
        uint8_t bytes[RV_SHA256_SIZE];
        int r;

        r = read_key(key, bytes);
        if (r < 0)
                return rv_error_set(err, r, "an idempotency key's HMAC is none");
        x->wait_ms = WAIT_MS;
        r = ask(x, bytes, UINT64_MAX, ret, err);
        if (r != RV__INDEX_E_BROKEN)
                return rv_trace(r);
        r = make_anew(x, err);
        if (r == 0)
                r = ask(x, bytes, UINT64_MAX, ret, err);
        if (r <= 0)
                return rv_trace(r);
        return rv__index_fail(x, err, rv_raise(-EBADMSG), "is broken again right after it was made anew from the log");
}

int rv_index_find_locked(
        struct rv_index *x, const char key[RV_SHA256_HEX_SIZE], struct rv_index_key *ret, struct rv_error *err)
{
        uint8_t bytes[RV_SHA256_SIZE];
        struct rv_error why = { 0 };
        int r;

        r = read_key(key, bytes);
        if (r < 0)
                return rv_error_set(err, r, "an idempotency key's HMAC is none");
        x->wait_ms = WAIT_LOCKED_MS;
        r = ask(x, bytes, LOCKED_BYTES, ret, &why);
        if (r > 0 || r == -ETIMEDOUT)
                return RV_INDEX_E_AGAIN;
        return r < 0 ? rv_error_set(err, r, "%s", why.message) : 0;
}
