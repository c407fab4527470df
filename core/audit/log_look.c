#include "audit/lines.h"
#include "audit/log_private.h"

#include <fcntl.h>
#include <sys/stat.h>

int rv_log_read_line(struct rv_log *log, const char *segment, uint64_t offset, size_t n, struct rv_buf *out,
        struct rv_error *err)
{
        return rv_trace(rv_lines_one(log->audit_fd, log->audit_path, segment, offset, n, out, err));
}

int rv_log_end(struct rv_log *log, char ret_segment[RV_LOG_SEGMENT_NAME_SIZE], uint64_t *ret_size, struct rv_error *err)
{
        struct stat st;
        int r;

        r = rv_segments_newest(log->audit_fd, log->audit_path, NULL, ret_segment, err);
        if (r <= 0)
                return rv_trace(r);
        if (fstatat(log->audit_fd, ret_segment, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), ret_segment, "cannot look at the file");
        *ret_size = (uint64_t)st.st_size;
        return 1;
}
