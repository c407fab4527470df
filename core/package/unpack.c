#include "package/unpack.h"

#include "base/child.h"
#include "base/helper.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define HELPER "reeve-unpack"
#define COMPLAINT_BYTES_MAX ((size_t)1024)
#define RESULT_DEPTH_MAX 8u
#define INTEGER_MAX ((json_int_t)1 << 53)
#define SHA256_CHARACTERS 64u
#define SHA512_CHARACTERS 128u

int rv_unpack_find(int *ret_fd, struct rv_error *err)
{
        return rv_trace(rv_helper_find("unpack", HELPER, ret_fd, err));
}

/* ---- What it answers ---- */

static int bad(struct rv_error *err, const char *what)
{
        return rv_error_set(err, rv_raise(-EPROTO), "the helper " HELPER " gave an answer that %s", what);
}

static bool is_hex(const json_t *o, const char *name, size_t n)
{
        const char *text = json_string_value(json_object_get(o, name));

        return text && strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

static bool is_count(const json_t *o, const char *name)
{
        const json_t *v = json_object_get(o, name);

        return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < INTEGER_MAX;
}

/* One line, bounded, without controls; "" counts. */
static bool is_line(const json_t *o, const char *name)
{
        const json_t *v = json_object_get(o, name);
        const char *text = json_string_value(v);
        size_t n = json_string_length(v);

        if (!text || n > RV_UNPACK_TEXT_MAX || strlen(text) != n)
                return false;
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)text[i];

                if (c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)text[i + 1] < 0xa0))
                        return false;
        }
        return rv_utf8_check(text, n, NULL);
}

static bool is_fault(const json_t *fault)
{
        static const char *const causes[] = { "unsafe_archive", "name_mismatch", "build_failed" };

        for (size_t i = 0; i < RV_N_ELEMENTS(causes); i++)
                if (strcmp(rv_json_get_string(fault, "cause", ""), causes[i]) == 0)
                        return is_line(fault, "text") && json_object_size(fault) == 2;
        return false;
}

static bool is_requires(json_t *list)
{
        json_t *one;
        size_t i;

        if (!json_is_array(list))
                return false;
        json_array_foreach(list, i, one)
                if (!is_line(one, "name") || !is_line(one, "marker") || json_object_size(one) != 2)
                        return false;
        return true;
}

static int check_one(const json_t *asked, const json_t *a, struct rv_error *err)
{
        static const char *const lines[] = { "name", "version", "license", "requires_python" };
        static const char *const counts[] = { "n_files", "unpacked_bytes" };
        const json_t *fault = json_object_get(a, "fault");
        bool is_good = true;

        if (!json_is_object(a) || strcmp(rv_json_get_string(a, "file", ""), rv_json_get_string(asked, "file", "")) != 0 || !is_count(a, "size_bytes"))
                return bad(err, "is none to what it was asked");
        if (fault)
                return is_fault(fault) && json_object_size(a) == 5 && (is_hex(a, "sha256", SHA256_CHARACTERS) || is_hex(a, "sha256", 0)) &&
                                (is_hex(a, "sha512", SHA512_CHARACTERS) || is_hex(a, "sha512", 0)) ? 0
                        : bad(err, "has a fault of no known form");
        for (size_t i = 0; i < RV_N_ELEMENTS(lines); i++)
                is_good = is_good && is_line(a, lines[i]);
        for (size_t i = 0; i < RV_N_ELEMENTS(counts); i++)
                is_good = is_good && is_count(a, counts[i]);
        is_good = is_good && is_hex(a, "sha256", SHA256_CHARACTERS) && is_hex(a, "sha512", SHA512_CHARACTERS);
        is_good = is_good && is_requires(json_object_get(a, "requires")) && json_is_boolean(json_object_get(a, "install_script"));
        return is_good && json_object_size(a) == 12 ? 0 : bad(err, "does not describe an artifact");
}

int rv_unpack_scan_check(const json_t *job, const char *text, size_t n, json_t **ret, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *result = NULL;
        const json_t *asked = json_object_get(job, "artifacts"), *all;
        int r = rv_json_read(text, n, RESULT_DEPTH_MAX, &result, NULL);

        if (r == -ENOMEM)
                return rv_error_set(err, r, "out of memory for an answer");
        all = json_object_get(result, "artifacts");
        if (r < 0 || !json_is_array(all) || json_object_size(result) != 1)
                return bad(err, "is no list of artifacts");
        if (json_array_size(all) != json_array_size(asked))
                return bad(err, "is none to what it was asked");
        for (size_t i = 0; i < json_array_size(all); i++) {
                r = check_one(json_array_get(asked, i), json_array_get(all, i), err);
                if (r < 0)
                        return rv_trace(r);
        }
        *ret = rv_take(&result);
        return 0;
}

/* ---- Asking it ---- */

int rv_unpack_scan(int helper_fd, int dir_fd, const json_t *job, const _Atomic bool *stop, uint64_t deadline_us,
        json_t **ret, struct rv_error *err)
{
        static const char *const argv[] = { HELPER, "scan", NULL };
        _cleanup_(rv_freep) char *text = json_dumps(job, JSON_COMPACT);
        _cleanup_(rv_child_fini) struct rv_child child = { .exe_fd = helper_fd, .argv = argv };
        struct iovec in;
        char end[512];
        int r;

        if (!text)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for a job");
        in = (struct iovec){ text, strlen(text) };
        child.in = &in;
        child.n_in = 1;
        child.fds = &dir_fd;
        child.n_fds = 1;
        child.out_max = RV_UNPACK_RESULT_BYTES_MAX;
        child.err_max = COMPLAINT_BYTES_MAX;
        child.deadline_us = deadline_us;
        child.stop = stop;
        r = rv_child_run(&child, err);
        if (r < 0)
                return rv_trace(r);
        if (child.status != 0)
                return rv_error_set(err, rv_raise(-EPROTO), "the helper " HELPER " %s", rv_child_end_text(&child, end, sizeof(end)));
        return rv_trace(rv_unpack_scan_check(job, child.out.data, child.out.size, ret, err));
}
