#include "build.h"

#include "base/fd.h"
#include "digest.h"
#include "job.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_NAME "manifest.json"
#define COPY_NAME ".artifact"

static bool is_python(const json_t *job)
{
        return strcmp(rv_json_get_string(job, "language", ""), "python") == 0;
}

static const json_t *packages(const json_t *job)
{
        return json_object_get(job, "packages");
}

/* ---- The job ---- */

static bool is_hex(const char *text)
{
        return text && strlen(text) == RV_SHA256_HEX_SIZE - 1 && strspn(text, "0123456789abcdef") == RV_SHA256_HEX_SIZE - 1;
}

static int check_package(const json_t *p, bool is_wheel, size_t i, struct rv_error *err)
{
        const json_t *at = json_object_get(p, "at");
        json_t *place;
        size_t k;

        if (!job_text(p, "name") || !job_text(p, "version") || !is_hex(job_text(p, "sha256")))
                return rv_error_set(err, rv_raise(-EINVAL), "package %zu of the job has no `name`, `version` or `sha256`", i);
        if (is_wheel)
                return 0;
        if (!json_array_size(at))
                return rv_error_set(err, rv_raise(-EINVAL), "package %zu of the job has no place in `at`", i);
        json_array_foreach((json_t *)at, k, place)
                if (!json_is_string(place) || !modules_place(json_string_value(place)))
                        return rv_error_set(err, rv_raise(-EINVAL), "package %zu of the job has a place in `at` that is not below node_modules", i);
        return 0;
}

static int check_runtime(const json_t *runtime, struct rv_error *err)
{
        const char *version = rv_json_get_string(runtime, "version", ""), *interpreter = job_text(runtime, "interpreter");
        size_t minor = strncmp(version, "3.", 2) == 0 ? strspn(version + 2, "0123456789") : 0;

        if (minor == 0 || minor > 3 || version[2 + minor])
                return rv_error_set(err, rv_raise(-EINVAL), "the job's runtime has no `version` as 3.11");
        if (!interpreter || *interpreter != '/' || strrchr(interpreter, '/') == interpreter || strstr(interpreter, "/.."))
                return rv_error_set(err, rv_raise(-EINVAL), "the job's runtime has no absolute path as `interpreter`");
        return 0;
}

int build_check(const json_t *job, struct rv_error *err)
{
        int r = 0;
        json_t *p;
        size_t i;

        if (!is_python(job) && strcmp(rv_json_get_string(job, "language", ""), "javascript") != 0)
                return rv_error_set(err, rv_raise(-EINVAL), "the job's `language` is neither python nor javascript");
        if (is_python(job))
                r = check_runtime(json_object_get(job, "runtime"), err);
        json_array_foreach((json_t *)packages(job), i, p)
                if (r == 0)
                        r = check_package(p, is_python(job), i, err);
        return r < 0 ? rv_trace(r) : 0;
}

/* ---- The packages ---- */

/* The artifact's bytes in a file without a name, and their digest. */
static int copy(int fd, struct digests *d, int *ret_fd)
{
        int r;

        *ret_fd = openat(JOB_FD_STAGING, COPY_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (*ret_fd < 0)
                return rv_raise(-errno);
        if (unlinkat(JOB_FD_STAGING, COPY_NAME, 0) < 0)
                return rv_raise(-errno);
        r = digest_file(fd, *ret_fd, d);
        return r < 0 ? rv_trace(r) : 0;
}

static int add_package(struct build *b, const json_t *p, uint32_t owner, int fd, struct fault *f)
{
        _cleanup_(rv_closep) int copy_fd = -EBADF;
        struct digests d;
        int r = fd < 0 ? -ENOENT : copy(fd, &d, &copy_fd);

        if (r == 0 && strcmp(d.sha256, job_text(p, "sha256")) != 0)
                r = fault_set(f, UNPACK_MISHASHED, "its bytes have the SHA-256 %s, and the lock says %s", d.sha256, job_text(p, "sha256"));
        if (r == 0)
                r = is_python(b->job) ? venv_add(b, p, owner, copy_fd, f) : modules_add(b, p, owner, copy_fd, f);
        if (r < 0)
                r = job_trouble(r, f);
        if (r > 0)
                snprintf(f->package, sizeof(f->package), "%s", job_text(p, "name"));
        return r;
}

static int add_packages(struct build *b, const int *fds, struct fault *f)
{
        json_t *p;
        size_t i;
        int r = is_python(b->job) ? venv_begin(b, f) : 0;

        if (r)
                return r < 0 ? job_trouble(r, f) : r;
        json_array_foreach((json_t *)packages(b->job), i, p) {
                if (r == 0)
                        r = add_package(b, p, (uint32_t)i, fds[i], f);
                rv_close(fds[i]);
        }
        return r;
}

/* ---- The layer ---- */

static int name_owners(struct build *b)
{
        size_t n = json_array_size(packages(b->job)), i;
        json_t *p;

        b->owners = calloc(n + 1, sizeof(*b->owners));
        if (!b->owners)
                return rv_raise(-ENOMEM);
        json_array_foreach((json_t *)packages(b->job), i, p)
                b->owners[i] = job_text(p, "name");
        b->owners[n] = "the environment";
        b->own = (uint32_t)n;
        return 0;
}

int build(const json_t *job, const int *fds, json_t **ret, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        struct build b = { .job = job };
        struct fault f = { 0 };
        int r = name_owners(&b);

        if (r == 0 && mkdirat(JOB_FD_STAGING, TREE_NAME, 0755) < 0)
                r = rv_raise(-errno);
        if (r == 0)
                fd = openat(JOB_FD_STAGING, TREE_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (r == 0 && fd < 0)
                r = rv_raise(-errno);
        tree_open(&b.tree, fd, b.owners);
        if (r == 0)
                r = add_packages(&b, fds, &f);
        if (r == 0)
                r = tree_publish(&b.tree, JOB_FD_STAGING, MANIFEST_NAME, ret);
        tree_fini(&b.tree);
        free(b.owners);
        if (r > 0) {
                *ret = json_pack("{s:o}", "fault", job_fault(&f));
                r = *ret ? 0 : -ENOMEM;
        }
        return r < 0 ? rv_error_set(err, rv_trace(r), "cannot build the layer: %s", strerror(-r)) : 0;
}
