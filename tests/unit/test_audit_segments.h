/*
 * test_audit_segments.h - reading a log of many segments as an auditor would, for the tests that write one
 *
 * As test_audit_common.h, which it includes. One thread.
 */
#pragma once

#include "audit/log_private.h"

#include "test_audit_common.h"

#include <dirent.h>

static inline int compare_names(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

static inline int is_segment_entry(const struct dirent *e)
{
        return rv_log_is_segment(e->d_name);
}

/*
 * All records from the oldest segment on, every line checked, and the name of every segment with what it begins
 * with. @first is the seq of the first record, whose `prev` is not looked at unless it is 0.
 */
static inline json_t *read_segments(void **state, uint64_t first, unsigned *ret_n_segments)
{
        char prev[RV_SHA256_HEX_SIZE] = "0000000000000000000000000000000000000000000000000000000000000000";
        json_t *records = json_array();
        struct dirent **names;
        int n;

        n = scandir(in_state(state, "audit"), &names, is_segment_entry, compare_names);
        assert_true(n >= 0);
        for (int i = 0; i < n; i++) {
                _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
                char path[64], want[RV_LOG_SEGMENT_NAME_SIZE];
                size_t start = 0;

                snprintf(path, sizeof(path), "audit/%.30s", names[i]->d_name);
                assert_int_equal(rv_read_file_at(AT_FDCWD, in_state(state, path), (size_t)64 << 20, &b), 0);
                rv_log_segment_name(first + json_array_size(records), want);
                assert_string_equal(names[i]->d_name, want);
                while (start < b.size) {
                        const char *end = memchr(b.data + start, '\n', b.size - start);
                        size_t length;

                        if (!end)
                                fail_msg("the last line of %s is incomplete", path);
                        length = (size_t)(end - b.data) - start;
                        if (first && !json_array_size(records)) {
                                _cleanup_(rv_json_unrefp) json_t *record = rv_log_parse(b.data + start, length);

                                snprintf(prev, sizeof(prev), "%s", rv_json_get_string(record, "prev", ""));
                        }
                        json_array_append_new(
                                records, check_line(b.data + start, length, first + json_array_size(records), prev));
                        rv_sha256_hex(b.data + start, length, prev);
                        start += length + 1;
                }
                free(names[i]);
        }
        free(names);
        if (ret_n_segments)
                *ret_n_segments = (unsigned)n;
        return records;
}

static inline struct rv_log *open_small(void **state, uint64_t segment_max)
{
        struct rv_log *log = open_log(state);

        log->segment_max = segment_max;
        return log;
}
