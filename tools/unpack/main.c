/*
 * main.c - reeve-unpack: reads packages' archives for reeve, without any privilege
 *
 *     reeve-unpack scan|build|compiled [--uid N]     the job on standard input, the result on standard output:
 *                                                    package/unpack.h
 */
#include "build.h"
#include "compiled.h"
#include "confine.h"
#include "job.h"
#include "scan.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UID_NOBODY 65534u

enum mode {
        MODE_SCAN,
        MODE_BUILD,
        MODE_COMPILED,
        _MODE_MAX,
};

static const struct {
        const char *name;
        unsigned n_fds;
} modes[_MODE_MAX] = {
        [MODE_SCAN] = { "scan", JOB_FD_ARTIFACTS + 1 },
        [MODE_BUILD] = { "build", JOB_FD_STAGING + 1 },
        [MODE_COMPILED] = { "compiled", JOB_FD_TREE + 1 },
};

static bool read_uid(const char *text, uid_t *ret)
{
        char *end;
        unsigned long v;

        errno = 0;
        v = strtoul(text, &end, 10);
        if (errno || end == text || *end || *text == '-' || v == 0 || v >= UINT32_MAX)
                return false;
        *ret = (uid_t)v;
        return true;
}

static int usage(void)
{
        fprintf(stderr, "usage: reeve-unpack scan|build|compiled [--uid N]\n\n"
                        "Reads packages' archives for reeve: a job on standard input, the result on standard output.\n");
        return 2;
}

static int check_fds(enum mode mode, struct rv_error *err)
{
        for (unsigned fd = JOB_FD_ARTIFACTS; fd < modes[mode].n_fds; fd++) {
                struct stat st;

                if (fstat((int)fd, &st) < 0 || !S_ISDIR(st.st_mode))
                        return rv_error_set(err, rv_raise(-EBADF), "descriptor %u is no directory: reeve starts this program, nobody else", fd);
        }
        return 0;
}

/* Everything that names a file of the artifacts is opened before the first of them is read. */
static int prepare(enum mode mode, const json_t *job, int **ret_fds, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *one = mode == MODE_COMPILED ? json_pack("[O]", job) : NULL;
        const json_t *list = mode == MODE_SCAN ? json_object_get(job, "artifacts") : mode == MODE_BUILD ? json_object_get(job, "packages") : one;
        int r = 0;

        if (mode == MODE_SCAN)
                r = scan_check(job, err);
        else if (mode == MODE_BUILD)
                r = build_check(job, err);
        if (r == 0)
                r = job_open(list, ret_fds, err);
        return r < 0 ? rv_trace(r) : rv_trace(confine_calls(mode != MODE_SCAN, err));
}

static int work(enum mode mode, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *job = NULL, *result = NULL;
        _cleanup_(rv_freep) int *fds = NULL;
        int r = job_read(&job, err);

        if (r == 0)
                r = prepare(mode, job, &fds, err);
        if (r < 0)
                return rv_trace(r);
        if (mode == MODE_SCAN)
                r = scan(job, fds, &result, err);
        else if (mode == MODE_BUILD)
                r = build(job, fds, &result, err);
        else
                r = compiled(fds[0], &result, err);
        return r < 0 ? rv_trace(r) : rv_trace(job_answer(result, err));
}

int main(int argc, char **argv)
{
        struct rv_error err = { 0 };
        uid_t uid = UID_NOBODY;
        enum mode mode = MODE_SCAN;
        int r;

        while (argc > 1 && mode < _MODE_MAX && strcmp(argv[1], modes[mode].name) != 0)
                mode++;
        if (argc < 2 || mode == _MODE_MAX || (argc != 2 && (argc != 4 || strcmp(argv[2], "--uid") != 0 || !read_uid(argv[3], &uid))))
                return usage();
        signal(SIGPIPE, SIG_IGN);
        umask(0);
        /* For names beyond ASCII: libarchive goes by the locale. Its tables are read now. */
        r = setlocale(LC_CTYPE, "C.UTF-8") ? 0 : rv_error_set(&err, rv_raise(-ENOENT), "the locale C.UTF-8 is missing");
        if (r == 0)
                r = check_fds(mode, &err);
        if (r == 0)
                r = confine_process(uid, modes[mode].n_fds, &err);
        if (r == 0)
                r = work(mode, &err);
        if (r == 0)
                return 0;
        fprintf(stderr, "reeve-unpack: %s\n", err.message);
        return r == -EINVAL ? 2 : 1;
}
