#include "frames.h"

#include <string.h>

#define HEADER_BYTES 12u
#define BLOCK_BYTES ((size_t)64 << 10)
#define CODE_HEADER_BYTES 16u            /* magic, flags, hash of the source */
#define CODE_UNCHECKED_HASH 1u
#define CACHE "__pycache__/"

static uint32_t u32(const unsigned char *p)
{
        return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int bad(struct fault *f, const char *what)
{
        return fault_set(f, UNPACK_UNSAFE, "the stream of byte code %s", what);
}

/* All @n bytes. */
static int take(FILE *in, void *ret, size_t n, struct fault *f)
{
        if (fread(ret, 1, n, in) == n)
                return 0;
        return ferror(in) ? rv_raise(-EIO) : bad(f, "is cut off");
}

static int read_frame(FILE *in, const unsigned char header[HEADER_BYTES], const struct visitor *v, struct fault *f)
{
        static unsigned char block[BLOCK_BYTES];
        uint32_t n_path = u32(header + 4), left = u32(header + 8);
        char path[NAME_BYTES_MAX + 1];
        struct member m = { .path = path, .n = n_path, .bytes = left };
        int r;

        if (n_path == 0 || n_path > NAME_BYTES_MAX || left > FRAME_BYTES_MAX)
                return bad(f, "has a frame that is empty or too large");
        r = take(in, path, n_path, f);
        if (r)
                return r;
        path[n_path] = 0;
        r = name_check(path, n_path, f);
        if (r == 0)
                r = v->begin(v->ctx, &m, f);
        while (r == 0 && left) {
                size_t n = RV_MIN((size_t)left, sizeof(block));

                r = take(in, block, n, f);
                if (r == 0)
                        r = v->data(v->ctx, block, n, f);
                left -= (uint32_t)n;
        }
        return r ? r : v->end(v->ctx, f);
}

int frames_read(FILE *in, const struct visitor *v, struct fault *f)
{
        unsigned char header[HEADER_BYTES];
        uint64_t bytes = 0;
        int r;

        for (uint32_t n = 0;; n++) {
                r = take(in, header, sizeof(header), f);
                if (r)
                        return r;
                if (memcmp(header, "RVPE", 4) == 0) {
                        if (u32(header + 4) != n || u32(header + 8) != 0)
                                return bad(f, "has another number of frames than it says");
                        return fgetc(in) == EOF ? 0 : bad(f, "goes on behind its end");
                }
                if (memcmp(header, "RVPC", 4) != 0)
                        return bad(f, "has something that is no frame");
                bytes += u32(header + 8);
                if (n >= FRAMES_MAX || bytes > MEMBER_UNPACKED_BYTES_MAX)
                        return bad(f, "has too many frames, or is too large");
                r = read_frame(in, header, v, f);
                if (r)
                        return r;
        }
}

/* "lib/python3.N/site-packages/": its size, or 0. */
static size_t site_size(const char *path, size_t n)
{
        static const char before[] = "lib/python3.", after[] = "/site-packages/";
        size_t at = strlen(before), digits = 0;

        if (n <= at || memcmp(path, before, at) != 0)
                return 0;
        while (at + digits < n && path[at + digits] >= '0' && path[at + digits] <= '9')
                digits++;
        at += digits;
        if (digits == 0 || digits > 3 || n - at <= strlen(after) || memcmp(path + at, after, strlen(after)) != 0)
                return 0;
        return at + strlen(after);
}

static bool is_tag(const char *tag, size_t n)
{
        size_t at = 0, letters;

        while (at < n && tag[at] >= 'a' && tag[at] <= 'z')
                at++;
        letters = at;
        if (letters == 0 || at == n || tag[at++] != '-')
                return false;
        for (letters = at; at < n && tag[at] >= '0' && tag[at] <= '9'; at++)
                ;
        return at == n && at > letters;
}

bool frames_source(const char *path, size_t n, char *ret)
{
        const char *name = memrchr(path, '/', n), *dot;
        size_t site = site_size(path, n), n_name, directory;

        if (!site || !name)
                return false;
        directory = (size_t)(++name - path);
        n_name = n - directory;
        if (directory < site + strlen(CACHE) || memcmp(name - strlen(CACHE), CACHE, strlen(CACHE)) != 0 ||
                name[-(ptrdiff_t)strlen(CACHE) - 1] != '/')
                return false;
        if (n_name <= 4 || memcmp(name + n_name - 4, ".pyc", 4) != 0)
                return false;
        n_name -= 4;
        dot = memrchr(name, '.', n_name);
        if (!dot || dot == name || !is_tag(dot + 1, n_name - (size_t)(dot + 1 - name)))
                return false;
        directory -= strlen(CACHE);
        n_name = (size_t)(dot - name);
        memcpy(ret, path, directory);
        memcpy(ret + directory, name, n_name);
        memcpy(ret + directory + n_name, ".py", 4);
        return true;
}

bool frames_is_code(const void *data, size_t n)
{
        const unsigned char *p = data;

        return n >= CODE_HEADER_BYTES && p[2] == '\r' && p[3] == '\n' && u32(p + 4) == CODE_UNCHECKED_HASH;
}
