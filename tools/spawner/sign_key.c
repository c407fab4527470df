#include "sign_key.h"

#include "base/fd.h"
#include "base/test_point.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define OWN_DIRECTORY "keys"
#define OWN_NAME "ed25519"
#define SECRET_HEX (2 * RV_CHECKPOINT_KEY_BYTES)
#define SUFFIX_SIZE 32

int signer_fail(const struct signer *s, struct rv_error *err, int r, const char *suffix, const char *what)
{
        const char *advice = "";

        if (r == -EACCES || r == -EPERM || r == -EROFS)
                advice = "; the directory has to be one that the user who starts reeve can write to";
        return rv_error_set(err, r, "%s%s: %s: %s%s", s->path, suffix, what, strerror(-r), advice);
}

static void name_of(const struct signer *s, const char *suffix, char ret[sizeof(s->name) + SUFFIX_SIZE])
{
        snprintf(ret, sizeof(s->name) + SUFFIX_SIZE, "%s%s", s->name, suffix);
}

/* ---- The directory ---- */

static int find_path(struct signer *s, struct rv_error *err)
{
        const char *file = s->key_file ? s->key_file : s->config->audit.key;
        const char *name;
        int n;

        s->is_own_place = !file;
        if (file)
                n = snprintf(s->path, sizeof(s->path), "%s", file);
        else
                n = snprintf(s->path, sizeof(s->path), "%s/" OWN_DIRECTORY "/" OWN_NAME, s->config->state_dir);
        name = n > 0 && (size_t)n < sizeof(s->path) ? strrchr(s->path, '/') : NULL;
        if (!name || !name[1] || strlen(name + 1) >= sizeof(s->name))
                return rv_error_set(err, rv_raise(-ENAMETOOLONG), "%s: is no path of a key: it has to be absolute, below %zu bytes, with a name below %zu",
                                    s->path, sizeof(s->path), sizeof(s->name));
        memcpy(s->name, name + 1, strlen(name + 1) + 1);
        return 0;
}

static int open_own(struct signer *s, struct rv_error *err)
{
        _cleanup_(rv_closep) int state_fd = open(s->config->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        int fd;

        if (state_fd < 0)
                return signer_fail(s, err, rv_raise(-errno), "", "cannot open the state directory");
        fd = openat(state_fd, OWN_DIRECTORY, flags);
        if (fd < 0 && errno == ENOENT && (mkdirat(state_fd, OWN_DIRECTORY, 0700) == 0 || errno == EEXIST))
                fd = openat(state_fd, OWN_DIRECTORY, flags);
        return fd < 0 ? signer_fail(s, err, rv_raise(-errno), "", "cannot open its directory") : fd;
}

static int open_named(struct signer *s, struct rv_error *err)
{
        char directory[RV_SIGN_PATH_SIZE];
        size_t n = strlen(s->path) - strlen(s->name);
        int fd;

        memcpy(directory, s->path, n);
        directory[n > 1 ? n - 1 : n] = 0;
        fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? signer_fail(s, err, rv_raise(-errno), "", "cannot open its directory") : fd;
}

/*
 * The loop's user makes STATE/keys, for its own secret. Before the first key is made it becomes the signer's: others of
 * its group may add files, and remove what is theirs.
 */
static int take_over(struct signer *s, int fd, struct stat *st, struct rv_error *err)
{
        struct stat key;

        if (fstatat(fd, s->name, &key, AT_SYMLINK_NOFOLLOW) == 0)
                return rv_error_set(err, rv_raise(-EPERM), "%s: lies in a directory of uid %u, who could take away what the signer remembers; see that nobody tampered with it, then chown the directory to root and chmod it 1770",
                                    s->path, (unsigned)st->st_uid);
        if (fchown(fd, 0, (gid_t)-1) < 0 || fchmod(fd, 01770) < 0 || fstat(fd, st) < 0)
                return signer_fail(s, err, rv_raise(-errno), "", "cannot take over its directory");
        return 0;
}

static int check_directory(struct signer *s, int fd, struct rv_error *err)
{
        struct stat st;
        int r = 0;

        if (fstat(fd, &st) < 0)
                return signer_fail(s, err, rv_raise(-errno), "", "cannot look at its directory");
        if (s->is_own_place && geteuid() == 0 && st.st_uid != 0)
                r = take_over(s, fd, &st, err);
        if (r < 0)
                return rv_trace(r);
        if (st.st_uid != geteuid() && st.st_uid != 0)
                return rv_error_set(err, rv_raise(-EPERM), "%s: lies in a directory of uid %u, and the signer is uid %u; a key has to lie where only the signer's user can take it away",
                                    s->path, (unsigned)st.st_uid, (unsigned)geteuid());
        if ((st.st_mode & 022) && !(st.st_mode & S_ISVTX))
                return rv_error_set(err, rv_raise(-EPERM), "%s: lies in a directory that others can write to (mode %03o), who could take it away; chmod that to 700",
                                    s->path, st.st_mode & 07777);
        return 0;
}

int signer_open(struct signer *s, struct rv_error *err)
{
        int fd, r;

        if (s->dir_fd >= 0)
                return 0;
        r = find_path(s, err);
        if (r < 0)
                return rv_trace(r);
        fd = s->is_own_place ? open_own(s, err) : open_named(s, err);
        if (fd < 0)
                return rv_trace(fd);
        r = check_directory(s, fd, err);
        if (r < 0)
                rv_close(fd);
        else
                s->dir_fd = fd;
        return rv_trace(r);
}

int signer_sync_directory(const struct signer *s, struct rv_error *err)
{
        return fsync(s->dir_fd) < 0 ? signer_fail(s, err, rv_raise(-errno), "", "cannot sync its directory") : 0;
}

/* ---- Files ---- */

int signer_check_file(const struct signer *s, int fd, const char *suffix, struct stat *ret, struct rv_error *err)
{
        if (fstat(fd, ret) < 0)
                return signer_fail(s, err, rv_raise(-errno), suffix, "cannot look at the file");
        if (!S_ISREG(ret->st_mode))
                return rv_error_set(err, rv_raise(-EPERM), "%s%s: is no regular file", s->path, suffix);
        if (ret->st_uid != geteuid())
                return rv_error_set(err, rv_raise(-EPERM), "%s%s: belongs to uid %u, and the signer is uid %u; only a file of its own is used",
                                    s->path, suffix, (unsigned)ret->st_uid, (unsigned)geteuid());
        if (ret->st_mode & 077)
                return rv_error_set(err, rv_raise(-EPERM), "%s%s: is open to other users (mode %03o), who may have copied it; change to a new key with `reeve audit rotate` after chmod 600",
                                    s->path, suffix, ret->st_mode & 0777);
        if (ret->st_nlink != 1)
                return rv_error_set(err, rv_raise(-EPERM), "%s%s: has %u names; remove the others", s->path, suffix, (unsigned)ret->st_nlink);
        return 0;
}

/* Whole or not at all, and durable. */
static int put_file(struct signer *s, const char *suffix, const void *data, size_t n, mode_t mode, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        char name[sizeof(s->name) + SUFFIX_SIZE], other[sizeof(name) + 8];
        int r = 0;

        name_of(s, suffix, name);
        snprintf(other, sizeof(other), "%s.tmp", name);
        /* One that is there was left by a signer that died, or laid there by somebody else: it is not used. */
        for (int i = 0; i < 2 && fd < 0 && (i == 0 || (errno == EEXIST && unlinkat(s->dir_fd, other, 0) == 0)); i++)
                fd = openat(s->dir_fd, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return signer_fail(s, err, rv_raise(-errno), suffix, "cannot make the file");
        r = rv_write_all(fd, data, n);
        if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0 || renameat(s->dir_fd, other, s->dir_fd, name) < 0))
                r = rv_raise(-errno);
        if (r < 0) {
                unlinkat(s->dir_fd, other, 0);
                return signer_fail(s, err, r, suffix, "cannot write the file");
        }
        return rv_trace(signer_sync_directory(s, err));
}

/* ---- Keys ---- */

static bool read_secret(const char *text, ssize_t n, uint8_t ret[RV_CHECKPOINT_KEY_BYTES])
{
        if (n != SECRET_HEX + 1 || text[SECRET_HEX] != '\n' || strspn(text, "0123456789abcdef") != SECRET_HEX)
                return false;
        for (int i = 0; i < RV_CHECKPOINT_KEY_BYTES; i++) {
                char digits[3] = { text[2 * i], text[2 * i + 1], 0 };

                ret[i] = (uint8_t)strtoul(digits, NULL, 16);
        }
        return true;
}

static void drop(struct signer_key *key)
{
        rv_ed25519_key_free(key->key);
        *key = (struct signer_key){ 0 };
}

static int make_usable(struct signer *s, const char *suffix, int fd, struct signer_key *key, struct rv_error *err)
{
        uint8_t secret[RV_CHECKPOINT_KEY_BYTES];
        char text[SECRET_HEX + 3] = "";
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
        bool is_good = read_secret(text, n, secret);
        int r;

        explicit_bzero(text, sizeof(text));
        if (!is_good)
                return rv_error_set(err, rv_raise(-EBADMSG), "%s%s: does not hold %d hex digits and a newline; restore it from a copy", s->path, suffix,
                                    SECRET_HEX);
        r = rv_ed25519_key_new(secret, &key->key);
        explicit_bzero(secret, sizeof(secret));
        return r < 0 ? signer_fail(s, err, r, suffix, "cannot use the key") : 0;
}

/* 1; 0 there is no such file; -errno. */
static int load_one(struct signer *s, const char *suffix, struct signer_key *key, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        char name[sizeof(s->name) + SUFFIX_SIZE];
        struct stat st;
        int r;

        name_of(s, suffix, name);
        fd = openat(s->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0) {
                drop(key);
                return errno == ENOENT ? 0 : signer_fail(s, err, rv_raise(-errno), suffix, "cannot open");
        }
        r = signer_check_file(s, fd, suffix, &st, err);
        if (r == 0 && key->key && key->inode == st.st_ino &&
                memcmp(&key->changed, &st.st_ctim, sizeof(st.st_ctim)) == 0)
                return 1;
        drop(key);
        if (r == 0)
                r = make_usable(s, suffix, fd, key, err);
        if (r < 0)
                return rv_trace(r);
        key->inode = st.st_ino;
        key->changed = st.st_ctim;
        return 1;
}

int signer_load(struct signer *s, struct rv_error *err)
{
        int r;

        r = load_one(s, "", &s->key, err);
        if (r <= 0)
                return rv_trace(r);
        r = load_one(s, ".new", &s->next, err);
        return r < 0 ? rv_trace(r) : 1;
}

bool signer_was_there(const struct signer *s)
{
        char name[sizeof(s->name) + SUFFIX_SIZE];
        struct stat st;

        name_of(s, ".pub", name);
        return fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int signer_make(struct signer *s, bool is_next, struct rv_error *err)
{
        uint8_t secret[RV_CHECKPOINT_KEY_BYTES];
        char text[SECRET_HEX + 2];
        int r;

        if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
                return signer_fail(s, err, rv_raise(-EIO), "", "no randomness from the kernel");
        rv_hex(secret, sizeof(secret), text);
        text[SECRET_HEX] = '\n';
        r = put_file(s, is_next ? ".new" : "", text, SECRET_HEX + 1, 0600, err);
        explicit_bzero(secret, sizeof(secret));
        explicit_bzero(text, sizeof(text));
        if (r == 0)
                r = signer_load(s, err);
        return r < 0 ? rv_trace(r) : 0;
}

static void write_public(const struct signer_key *key, const char *log_id, char ret[RV_CHECKPOINT_VERIFIER_SIZE + 1],
        uint8_t ret_id[4])
{
        struct rv_checkpoint_key public = { 0 };

        memcpy(public.log_id, log_id, sizeof(public.log_id));
        memcpy(public.public_key, rv_ed25519_key_public(key->key), sizeof(public.public_key));
        rv_checkpoint_key_id(&public, ret_id);
        rv_checkpoint_key_text(&public, ret);
        memcpy(ret + strlen(ret), "\n", 2);
}

int signer_publish(struct signer *s, const char *log_id, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf there = { 0 };
        char name[sizeof(s->name) + SUFFIX_SIZE], text[RV_CHECKPOINT_VERIFIER_SIZE + 1];
        uint8_t id[4];

        write_public(&s->key, log_id, text, id);
        name_of(s, ".pub", name);
        if (rv_read_file_at(s->dir_fd, name, sizeof(text), &there) == 0 && there.size == strlen(text) &&
                memcmp(there.data, text, there.size) == 0)
                return 0;
        return rv_trace(put_file(s, ".pub", text, strlen(text), 0644, err));
}

/* The old key stays, under the name of its id, or only its public half does. */
static int keep_old(struct signer *s, int fd, const char *log_id, bool is_destroying, struct rv_error *err)
{
        char text[RV_CHECKPOINT_VERIFIER_SIZE + 1], suffix[SUFFIX_SIZE], secret[SECRET_HEX + 1], hex[9];
        uint8_t id[4];
        int r;

        write_public(&s->key, log_id, text, id);
        rv_hex(id, sizeof(id), hex);
        snprintf(suffix, sizeof(suffix), ".old-%s.pub", hex);
        r = put_file(s, suffix, text, strlen(text), 0644, err);
        if (r < 0 || is_destroying)
                return rv_trace(r);
        snprintf(suffix, sizeof(suffix), ".old-%s", hex);
        if (pread(fd, secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
                return signer_fail(s, err, rv_raise(-EIO), "", "cannot read the key");
        r = put_file(s, suffix, secret, sizeof(secret), 0600, err);
        explicit_bzero(secret, sizeof(secret));
        return rv_trace(r);
}

static void wipe(int fd)
{
        static const char zeros[SECRET_HEX] = { 0 };

        if (pwrite(fd, zeros, sizeof(zeros), 0) == sizeof(zeros))
                (void)fsync(fd);
}

int signer_change(struct signer *s, const char *log_id, bool is_destroying, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        char next[sizeof(s->name) + SUFFIX_SIZE];
        int r;

        fd = openat(s->dir_fd, s->name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return signer_fail(s, err, rv_raise(-errno), "", "cannot open the key");
        r = keep_old(s, fd, log_id, is_destroying, err);
        if (r < 0)
                return rv_trace(r);
        rv_test_point("rotate-key");
        name_of(s, ".new", next);
        if (renameat(s->dir_fd, next, s->dir_fd, s->name) < 0)
                return signer_fail(s, err, rv_raise(-errno), ".new", "cannot give the next key its place");
        r = signer_sync_directory(s, err);
        if (r == 0 && is_destroying)
                wipe(fd);
        rv_test_point("rotate-pub");
        if (r == 0)
                r = signer_load(s, err);
        return r < 0 ? rv_trace(r) : rv_trace(signer_publish(s, log_id, err));
}
