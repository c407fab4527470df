#include "uid.h"

#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_DIRECTORY "/run/reeve"
#define LOCK_FILE LOCK_DIRECTORY "/uids"

int rv_uid_take(uint32_t first, uint32_t last, struct rv_uid_pair *ret, struct rv_error *err)
{
        uint32_t n_pairs = (last - first + 1) / 2, start = 0;
        int fd, r;

        if (n_pairs < 2)
                return rv_error_set(err, rv_raise(-EINVAL), "uid_range %u-%u is too small: it needs at least 4 ids", first, last);
        if (mkdir(LOCK_DIRECTORY, 0755) < 0 && errno != EEXIST)
                goto fail;
        fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                goto fail;
        (void)!getrandom(&start, sizeof(start), GRND_NONBLOCK);
        for (uint32_t i = 0; i < n_pairs - 1; i++) {
                uint32_t pair = 1 + (start + i) % (n_pairs - 1);
                struct flock lock = {
                        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first + 2 * (off_t)pair, .l_len = 2
                };

                if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
                        *ret = (struct rv_uid_pair){ .init_uid = first + 2 * pair, .program_uid = first + 2 * pair + 1, .lock_fd = fd };
                        return 0;
                }
                if (errno != EAGAIN && errno != EACCES)
                        break;
        }
        r = -errno;
        rv_close(fd);
        return rv_error_set(err, rv_raise(r), "no free pair of user ids in uid_range %u-%u: %s; widen the range or run fewer at once",
                            first, last, strerror(-r));
fail:
        r = -errno;
        return rv_error_set(err, rv_raise(r), "cannot open %s: %s; /run must be writable for reeve", LOCK_FILE, strerror(-r));
}

void rv_uid_release(struct rv_uid_pair *pair)
{
        pair->lock_fd = rv_close(pair->lock_fd);
}
