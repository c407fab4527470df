#include "run/result.h"

#include "base/buf.h"
#include "run/result_json.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* All bytes from the beginning, wherever the descriptor's position is; one more than allowed is too big. */
static int read_all(int fd, struct rv_buf *out)
{
        int r;

        while (out->size <= RV_RESULT_BYTES_MAX) {
                size_t room = RV_MIN(RV_RESULT_BYTES_MAX + 1 - out->size, (size_t)65536);
                ssize_t n;

                r = rv_buf_reserve(out, room);
                if (r < 0)
                        return rv_trace(r);
                n = pread(fd, out->data + out->size, room, (off_t)out->size);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return rv_raise(-errno);
                out->data[out->size += (size_t)n] = 0;
                if (n == 0)
                        return 0;
        }
        return -EFBIG;
}

/* Why the file may not be read, or NULL. */
static const char *refuse_file(int fd)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return "the result file cannot be read";
        if (!S_ISREG(st.st_mode))
                return "not a regular file";
        if (st.st_nlink > 1)
                return "a file with more than one name (hard link)";
        if (st.st_size > RV_RESULT_BYTES_MAX)
                return "larger than 1 MiB";
        return NULL;
}

void rv_result_read(int fd, const char *note, struct rv_result *ret)
{
        _cleanup_(rv_buf_fini) struct rv_buf raw = { 0 }, compact = { 0 };
        const char *refusal;
        int r;

        *ret = (struct rv_result){ 0 };
        if (fd < 0) {
                snprintf(ret->note, sizeof(ret->note), "%s", note ? note : "");
                return;
        }
        refusal = refuse_file(fd);
        if (refusal) {
                snprintf(ret->note, sizeof(ret->note), "%s", refusal);
                return;
        }
        r = read_all(fd, &raw);
        if (r == 0)
                r = rv_result_json_compact(raw.data, raw.size, RV_RESULT_DEPTH_MAX, &compact, ret->note,
                        sizeof(ret->note));
        if (r == 0)
                ret->text = rv_buf_take(&compact, &ret->size);
        else if (r == -EFBIG)
                snprintf(ret->note, sizeof(ret->note), "larger than 1 MiB");
        else if (r < 0)
                snprintf(ret->note, sizeof(ret->note), "the result file cannot be read: %s", strerror(-r));
}

void rv_result_fini(struct rv_result *r)
{
        free(r->text);
        *r = (struct rv_result){ 0 };
}
