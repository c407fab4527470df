#include "scan.h"

#include "base/fd.h"
#include "digest.h"
#include "job.h"
#include "npm.h"
#include "wheel.h"

#include <string.h>

static bool is_python(const json_t *job)
{
        return strcmp(rv_json_get_string(job, "language", ""), "python") == 0;
}

int scan_check(const json_t *job, struct rv_error *err)
{
        json_t *a;
        size_t i;

        if (!is_python(job) && strcmp(rv_json_get_string(job, "language", ""), "javascript") != 0)
                return rv_error_set(err, rv_raise(-EINVAL), "the job's `language` is neither python nor javascript");
        json_array_foreach(json_object_get(job, "artifacts"), i, a)
                if (!job_text(a, "name") || !job_text(a, "version") || !job_text(a, "file_name"))
                        return rv_error_set(err, rv_raise(-EINVAL), "artifact %zu of the job has no `name`, `version` or `file_name`", i);
        return 0;
}

static int scan_wheel(int fd, const json_t *artifact, json_t *out, struct fault *f)
{
        const struct wheel_want want = { job_text(artifact, "name"), job_text(artifact, "version"), job_text(artifact, "file_name") };
        _cleanup_(wheel_fini) struct wheel w = { 0 };
        struct member_counts counts;
        json_t *more;
        int r = wheel_look(fd, &want, &w, f);

        if (r == 0)
                r = wheel_walk(fd, &w, NULL, &counts, f);
        if (r)
                return r < 0 ? rv_trace(r) : r;
        more = json_pack("{s:s, s:s, s:s, s:O, s:s, s:b, s:I, s:I}", "name", w.metadata.name, "version", w.metadata.version,
                "license", w.metadata.license, "requires", w.metadata.requires, "requires_python", w.metadata.requires_python,
                "install_script", 0, "n_files", (json_int_t)counts.n_files, "unpacked_bytes", (json_int_t)counts.unpacked_bytes);
        r = more ? json_object_update(out, more) : -1;
        json_decref(more);
        return r < 0 ? rv_raise(-ENOMEM) : 0;
}

static int scan_npm(int fd, const json_t *artifact, json_t *out, struct fault *f)
{
        const struct npm_want want = { job_text(artifact, "name"), job_text(artifact, "version") };
        _cleanup_(npm_fini) struct npm p = { 0 };
        json_t *more;
        int r = npm_look(fd, &want, &p, f);

        if (r)
                return r < 0 ? rv_trace(r) : r;
        more = json_pack("{s:s, s:s, s:s, s:[], s:s, s:b, s:I, s:I}", "name", want.name, "version", want.version, "license", p.license,
                "requires", "requires_python", "", "install_script", p.has_install_script, "n_files", (json_int_t)p.counts.n_files,
                "unpacked_bytes", (json_int_t)p.counts.unpacked_bytes);
        r = more ? json_object_update(out, more) : -1;
        json_decref(more);
        return r < 0 ? rv_raise(-ENOMEM) : 0;
}

static int scan_one(const json_t *job, const json_t *artifact, int fd, json_t *out)
{
        struct digests d = { 0 };
        struct fault f = { 0 };
        int r = fd < 0 ? -ENOENT : digest_file(fd, -EBADF, &d);

        json_object_set_new(out, "sha256", json_string(d.sha256));
        json_object_set_new(out, "sha512", json_string(d.sha512));
        json_object_set_new(out, "size_bytes", json_integer((json_int_t)d.bytes));
        if (r == 0)
                r = is_python(job) ? scan_wheel(fd, artifact, out, &f) : scan_npm(fd, artifact, out, &f);
        if (r < 0)
                r = job_trouble(r, &f);
        return r == 0 ? 0 : json_object_set_new(out, "fault", job_fault(&f));
}

int scan(const json_t *job, const int *fds, json_t **ret, struct rv_error *err)
{
        const json_t *list = json_object_get(job, "artifacts");
        json_t *all = json_array(), *a;
        int r = all ? 0 : -1;
        size_t i;

        json_array_foreach((json_t *)list, i, a) {
                json_t *out = json_pack("{s:O}", "file", json_object_get(a, "file"));

                if (!out || r < 0 || scan_one(job, a, fds[i], out) < 0 || json_array_append(all, out) < 0)
                        r = -1;
                json_decref(out);
                rv_close(fds[i]);
        }
        *ret = r < 0 ? NULL : json_pack("{s:O}", "artifacts", all);
        json_decref(all);
        return *ret ? 0 : rv_error_set(err, rv_raise(-ENOMEM), "out of memory for the result");
}
