#include "sign_memory.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/test_point.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define SLOT_BYTES 512
#define ROOT_HEX (2 * RV_SHA256_SIZE)
#define CHECK_HEX 16
#define LINE_BYTES (20 + 1 + ROOT_HEX + 1 + CHECK_HEX)
#define LOCK_WAIT_US 500000
#define LOCK_PAUSE_US 500

static void write_line(uint64_t size, const rv_merkle_hash root, char ret[SLOT_BYTES])
{
        char root_hex[RV_SHA256_HEX_SIZE], check[RV_SHA256_HEX_SIZE];
        int n;

        memset(ret, ' ', SLOT_BYTES);
        rv_hex(root, RV_SHA256_SIZE, root_hex);
        n = snprintf(ret, SLOT_BYTES, "%020" PRIu64 " %s ", size, root_hex);
        rv_sha256_hex(ret, (size_t)n, check);
        memcpy(ret + n, check, CHECK_HEX);
        ret[SLOT_BYTES - 1] = '\n';
}

/* Read strictly: it is what would be written. */
static bool read_line(const char line[SLOT_BYTES], uint64_t *ret_size, rv_merkle_hash ret_root)
{
        char again[SLOT_BYTES], digits[3] = { 0 };
        uint64_t size = 0;
        rv_merkle_hash root;

        for (int i = 0; i < 20; i++) {
                if (line[i] < '0' || line[i] > '9')
                        return false;
                size = size * 10 + (uint64_t)(line[i] - '0');
        }
        for (int i = 0; i < RV_SHA256_SIZE; i++) {
                memcpy(digits, line + 21 + 2 * i, 2);
                root[i] = (uint8_t)strtoul(digits, NULL, 16);
        }
        write_line(size, root, again);
        if (memcmp(line, again, SLOT_BYTES) != 0)
                return false;
        *ret_size = size;
        memcpy(ret_root, root, sizeof(root));
        return true;
}

static int parse(const struct signer *s, const char *text, size_t n, struct signer_memory *m, struct rv_error *err)
{
        unsigned n_slots = (unsigned)(n / SLOT_BYTES), n_good = 0;

        m->size = 0;
        m->slot = 1;
        rv_merkle_root(&(struct rv_merkle){ 0 }, m->root);
        for (unsigned i = 0; i < n_slots; i++) {
                rv_merkle_hash root;
                uint64_t size;

                if (!read_line(text + (size_t)i * SLOT_BYTES, &size, root))
                        continue;
                if (n_good && size == m->size && memcmp(root, m->root, sizeof(root)) != 0)
                        n_slots = 0;      /* and that it never wrote */
                if (n_good++ && size <= m->size)
                        continue;
                m->size = size;
                m->slot = i;
                memcpy(m->root, root, sizeof(root));
        }
        if (n && (!n_good || !n_slots || n > 2 * SLOT_BYTES))
                return rv_error_set(err, rv_raise(-EBADMSG), "%s%s: does not hold what the signer writes, and without what was signed last nothing more is signed; restore it from a copy, or make a new key: move %s and all files whose names begin so away",
                                    s->path, m->suffix, s->path);
        return 0;
}

static int open_file(struct signer *s, const char *log_id, int flags, struct signer_memory *m, struct rv_error *err)
{
        char name[sizeof(s->name) + SIGNER_SUFFIX_SIZE];
        struct stat st;
        int r;

        snprintf(m->suffix, sizeof(m->suffix), ".%s.signed", log_id);
        snprintf(name, sizeof(name), "%s%s", s->name, m->suffix);
        m->fd = openat(s->dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
        if (m->fd < 0)
                return errno == ENOENT ? -ENOENT : signer_fail(s, err, rv_raise(-errno), m->suffix, "cannot open what was signed last");
        r = signer_check_file(s, m->fd, m->suffix, &st, err);
        if (r < 0)
                signer_memory_close(m);
        return rv_trace(r);
}

static int read_file(struct signer *s, struct signer_memory *m, struct rv_error *err)
{
        char text[2 * SLOT_BYTES + 1];
        ssize_t n = pread(m->fd, text, sizeof(text), 0);

        if (n < 0)
                return signer_fail(s, err, rv_raise(-errno), m->suffix, "cannot read what was signed last");
        return parse(s, text, (size_t)n, m, err);
}

static int lock(int fd)
{
        uint64_t give_up_us = rv_boot_us() + LOCK_WAIT_US;

        while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK && errno != EINTR)
                        return rv_raise(-errno);
                if (rv_boot_us() > give_up_us)
                        return rv_raise(-ETIMEDOUT);
                usleep(LOCK_PAUSE_US);
        }
        return 0;
}

int signer_memory_open(struct signer *s, const char *log_id, struct signer_memory *ret, struct rv_error *err)
{
        struct signer_memory m = { 0 };
        int r;

        r = open_file(s, log_id, O_RDWR | O_CREAT, &m, err);
        if (r < 0)
                return rv_trace(r);
        r = lock(m.fd);
        if (r < 0)
                signer_fail(s, err, r, m.suffix, "cannot lock what was signed last");
        else
                r = read_file(s, &m, err);
        if (r < 0)
                signer_memory_close(&m);
        else
                *ret = m;
        return rv_trace(r);
}

int signer_memory_look(struct signer *s, const char *log_id, struct signer_memory *ret, struct rv_error *err)
{
        struct signer_memory m = { 0 };
        int r;

        r = open_file(s, log_id, O_RDONLY, &m, err);
        if (r == -ENOENT)
                r = parse(s, "", 0, &m, err);
        else if (r == 0)
                r = read_file(s, &m, err);
        signer_memory_close(&m);
        if (r == 0)
                *ret = m;
        return rv_trace(r);
}

int signer_memory_set(struct signer *s, struct signer_memory *m, uint64_t size, const rv_merkle_hash root,
        struct rv_error *err)
{
        char line[SLOT_BYTES];
        unsigned slot = !m->slot;
        bool is_first = m->size == 0;
        int r;

        write_line(size, root, line);
        rv_test_point("seal-memory");
        /* Also if it is the same as before: a sync of another may have failed, and this one then tells. */
        if (pwrite(m->fd, line, sizeof(line), (off_t)slot * SLOT_BYTES) != SLOT_BYTES || fdatasync(m->fd) < 0)
                return signer_fail(s, err, rv_raise(errno ? -errno : -EIO), m->suffix, "cannot write what is signed");
        if (is_first) {
                r = signer_sync_directory(s, err);
                if (r < 0)
                        return rv_trace(r);
        }
        m->size = size;
        m->slot = slot;
        memcpy(m->root, root, sizeof(m->root));
        return 0;
}

void signer_memory_close(struct signer_memory *m)
{
        m->fd = rv_close(m->fd);
}
