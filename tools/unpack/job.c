#include "job.h"

#include "base/confine.h"
#include "base/fd.h"
#include "package/unpack.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 8u

int job_read(json_t **ret, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        int r = rv_read_fd(STDIN_FILENO, RV_UNPACK_JOB_BYTES_MAX, &text);

        if (r < 0)
                return rv_error_set(err, rv_trace(r), "cannot read the job: %s", strerror(-r));
        r = rv_json_read(text.data ? text.data : "", text.size, DEPTH_MAX, ret, err);
        if (r < 0)
                return rv_trace(r);
        if (!json_is_object(*ret))
                return rv_error_set(err, rv_raise(-EINVAL), "the job is no JSON object");
        return 0;
}

const char *job_text(const json_t *object, const char *name)
{
        const char *text = rv_json_get_string(object, name, "");
        size_t n = strlen(text);

        if (n == 0 || n > 1024)
                return NULL;
        for (const char *c = text; *c; c++)
                if ((unsigned char)*c < 0x20 || *c == 0x7f)
                        return NULL;
        return text;
}

static int open_one(const json_t *artifact, int *ret_fd, struct rv_error *err)
{
        const char *file = job_text(artifact, "file");

        if (!file || strchr(file, '/') || strcmp(file, ".") == 0 || strcmp(file, "..") == 0)
                return rv_error_set(err, rv_raise(-EINVAL), "the job names an artifact without `file`, or by one that is no file's name");
        *ret_fd = openat(JOB_FD_ARTIFACTS, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (*ret_fd < 0 && (errno == EMFILE || errno == ENFILE))
                return rv_error_set(err, rv_raise(-errno), "too many artifacts at once: %s", strerror(errno));
        return 0;
}

int job_open(const json_t *list, int **ret_fds, struct rv_error *err)
{
        size_t n = json_array_size(list);
        int *fds, r = 0;

        if (!json_is_array(list) || n == 0 || n > RV_UNPACK_ARTIFACTS_MAX)
                return rv_error_set(err, rv_raise(-EINVAL), "the job has no list of artifacts, or one of more than %u", RV_UNPACK_ARTIFACTS_MAX);
        fds = calloc(n, sizeof(*fds));
        if (!fds)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for the job");
        for (size_t i = 0; i < n && r == 0; i++)
                r = open_one(json_array_get(list, i), &fds[i], err);
        if (r < 0) {
                free(fds);
                return rv_trace(r);
        }
        *ret_fds = fds;
        return 0;
}

int job_answer(const json_t *result, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        int r = result ? rv_json_canonical(result, &text) : -ENOMEM;

        if (r == 0)
                r = rv_write_all(STDOUT_FILENO, text.data, text.size);
        return r < 0 ? rv_error_set(err, rv_trace(r), "cannot write the result: %s", strerror(-r)) : 0;
}

json_t *job_fault(const struct fault *f)
{
        json_t *o = json_pack("{s:s, s:s}", "cause", f->cause, "text", f->text);

        if (o && *f->package)
                json_object_set_new(o, "package", json_string(f->package));
        return o;
}

int job_trouble(int r, struct fault *f)
{
        return fault_set(f, UNPACK_FAILED, "it cannot be worked with: %s", strerror(-r));
}
