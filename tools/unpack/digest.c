#include "digest.h"

#include "base/fd.h"

#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_BYTES ((size_t)128 << 10)

int digest_file(int fd, int copy_fd, struct digests *ret)
{
        _cleanup_(rv_freep) char *block = malloc(BLOCK_BYTES);
        uint8_t digest[RV_SHA512_SIZE];
        struct rv_sha256 sha256;
        struct rv_sha512 sha512;
        struct stat st;
        ssize_t n;
        int r;

        if (!block)
                return rv_raise(-ENOMEM);
        if (fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0)
                return rv_raise(-errno);
        if (!S_ISREG(st.st_mode))
                return rv_raise(-EINVAL);
        rv_sha256_init(&sha256);
        rv_sha512_init(&sha512);
        ret->bytes = 0;
        while ((n = read(fd, block, BLOCK_BYTES)) != 0) {
                if (n < 0 && errno != EINTR)
                        return rv_raise(-errno);
                if (n < 0)
                        continue;
                rv_sha256_update(&sha256, block, (size_t)n);
                if (copy_fd < 0)
                        rv_sha512_update(&sha512, block, (size_t)n);
                ret->bytes += (uint64_t)n;
                r = copy_fd < 0 ? 0 : rv_write_all(copy_fd, block, (size_t)n);
                if (r < 0)
                        return rv_trace(r);
        }
        rv_sha256_final(&sha256, digest);
        rv_hex(digest, RV_SHA256_SIZE, ret->sha256);
        rv_sha512_final(&sha512, digest);
        rv_hex(digest, RV_SHA512_SIZE, ret->sha512);
        return 0;
}
