/*
 * The bytes of a stored outcome: what is read is what would be written again, byte for byte, and can be given to a
 * person and as an exit status; what is refused leaves nothing behind.
 */
#include "fuzz.h"

#include "run/outcome_read.h"

static int sink_buf(void *ctx, const void *data, size_t n)
{
        return rv_buf_append(ctx, data, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(rv_outcome_kept_freep) struct rv_outcome_kept *kept = NULL;
        _cleanup_(rv_buf_fini) struct rv_buf again = { 0 }, line = { 0 };
        int r;

        r = rv_outcome_read((const char *)data, size, &kept);
        FUZZ_CHECK(r == 0 || (r == -EBADMSG && !kept), "%d", r);
        if (r < 0)
                return 0;
        FUZZ_CHECK(rv_outcome_write(&kept->outcome, sink_buf, &again) == 0);
        FUZZ_CHECK(again.size == size && memcmp(again.data, data, size) == 0, "%s", again.data);
        FUZZ_CHECK(rv_outcome_line(&kept->outcome, &line) == 0);
        if (line.size)
                line.data[line.size - 1] = 0;
        FUZZ_CHECK(!line.size || fuzz_is_line(line.data), "%s", line.data);
        r = rv_outcome_exit_status(&kept->outcome.reason);
        FUZZ_CHECK(r >= 0 && r <= 255, "%d", r);
        return 0;
}
