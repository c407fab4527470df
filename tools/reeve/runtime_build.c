#include "audit_options.h"
#include "reeve.h"
#include "runtime.h"
#include "runtime_make.h"

#include "base/clock.h"
#include "base/config_value.h"
#include "base/fd.h"
#include "base/remove.h"
#include "run/terminal.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
        "usage: reeve runtime build NAME [--suite bookworm] [--output DIR]\n"
        "           [--format directory|erofs] [--mirror URL] [--include PKG,…] [--replace] [--json]\n"
        "\n"
        "Makes a minimal root of Debian packages with python3, node and their package managers,\n"
        "by mmdebstrap, as DIR/NAME or DIR/NAME.erofs, and DIR/NAME.runtime.json, which names the\n"
        "packages and the digest. The same packages give the same image.\n"
        "\n"
        "--suite    Debian's release; by default this host's\n"
        "--output   by default /var/lib/reeve-runtimes as root, else\n"
        "           $XDG_DATA_HOME/reeve/runtimes (~/.local/share/reeve/runtimes)\n"
        "--format   directory (the default), or erofs: an image, which root alone can mount\n"
        "--mirror   an address of Debian packages; by default the sources, keys and proxies of\n"
        "           this host's own apt\n"
        "--include  further packages\n"
        "--replace  a runtime of that name is there already: take its place, once this is made\n"
        "\n"
        "Exit status 0: it is there; 1: it could not be made, and nothing is left of it; 2: usage;\n"
        "130: it was interrupted.\n";

enum { OPT_SUITE = AUDIT_OPT_OWN, OPT_OUTPUT, OPT_FORMAT, OPT_MIRROR, OPT_INCLUDE, OPT_REPLACE };

struct order {
        struct runtime_build build;
        const char *output;
        char output_built_in[4096];
        bool is_replacing;
        bool is_terminal;
        uint64_t begun_us;
        int staging_fd;                  /* locked while the build goes on */
        char target[4096 + 256], description[4096 + 256];
};

/* ---- What is asked for ---- */

static bool is_word(const char *text, const char *more)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
        size_t n = strlen(text);

        for (size_t i = 0; i < n; i++)
                if (!strchr(letters, text[i]) && !strchr(more, text[i]))
                        return false;
        return n > 0 && n < 1024 && strchr(letters, *text);
}

static bool is_mirror(const char *text)
{
        static const char *const schemes[] = { "http://", "https://", "file:/", "copy:/" };

        if (text[strcspn(text, " \t\n\r[]#")])
                return false;
        for (size_t i = 0; i < RV_N_ELEMENTS(schemes); i++)
                if (!strncmp(text, schemes[i], strlen(schemes[i])) && text[strlen(schemes[i])])
                        return true;
        return false;
}

static int take(void *ctx, int id, const char *value)
{
        struct order *o = ctx;

        switch (id) {
        case OPT_SUITE:
                o->build.suite = value;
                return is_word(value, ".-") ? 0 : usage_error("runtime build", "--suite wants the name of a release, such as bookworm");
        case OPT_OUTPUT:
                o->output = value;
                return *value ? 0 : usage_error("runtime build", "--output wants a directory");
        case OPT_FORMAT:
                o->build.is_image = !strcmp(value, "erofs");
                return o->build.is_image || !strcmp(value, "directory") ? 0 : usage_error("runtime build", "--format wants directory or erofs");
        case OPT_MIRROR:
                o->build.mirror = value;
                return is_mirror(value) ? 0 : usage_error("runtime build", "--mirror wants an address: http://, https:// or file:/");
        case OPT_INCLUDE:
                o->build.include = value;
                return is_word(value, "+-.,:") ? 0 : usage_error("runtime build", "--include wants names of packages with commas between");
        default:
                o->is_replacing = true;
                return 0;
        }
}

/* Not below STATE: that is the loop's, which must not change what it runs. */
static int find_output(struct order *o, struct rv_error *err)
{
        const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
        char *p = o->output_built_in;

        if (o->output && o->output[0] != '/') {
                char here[2048];

                if (!getcwd(here, sizeof(here)) || (size_t)snprintf(p, sizeof(o->output_built_in), "%s/%s", here, o->output) >= sizeof(o->output_built_in))
                        return rv_error_set(err, rv_raise(-EINVAL), "--output %s: the working directory is unknown; give an absolute path", o->output);
        } else if (o->output) {
                snprintf(p, sizeof(o->output_built_in), "%s", o->output);
        } else if (geteuid() == 0) {
                snprintf(p, sizeof(o->output_built_in), "/var/lib/reeve-runtimes");
        } else if (data && data[0] == '/') {
                snprintf(p, sizeof(o->output_built_in), "%s/reeve/runtimes", data);
        } else if (home && home[0] == '/') {
                snprintf(p, sizeof(o->output_built_in), "%s/.local/share/reeve/runtimes", home);
        } else {
                return rv_error_set(err, rv_raise(-EINVAL), "no directory to build in: neither HOME nor XDG_DATA_HOME is an absolute path; say --output");
        }
        if (strlen(p) > 3000)
                return rv_error_set(err, rv_raise(-ENAMETOOLONG), "the path of the output directory is too long");
        o->output = p;
        return 0;
}

/* ---- Progress: one line on a terminal, written over; else a line each ---- */

static void on_progress(void *ctx, const char *text)
{
        struct order *o = ctx;
        _cleanup_(rv_buf_fini) struct rv_buf shown = { 0 };

        if (!o->is_terminal)
                return;
        (void)rv_terminal_put_line(text, &shown);
        fprintf(stderr, "\r\033[K%s: %3llu s: %.60s", o->build.name, (unsigned long long)((rv_boot_us() - o->begun_us) / 1000000), shown.data ? shown.data : "");
        (void)fflush(stderr);
}

static void end_progress(const struct order *o)
{
        if (o->is_terminal)
                fputs("\r\033[K", stderr);
}

/* ---- The directory that it is built in ---- */

static void remove_staging(const struct order *o)
{
        _cleanup_(rv_closep) int fd = open(o->output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0)
                (void)rv_remove_tree_at(fd, strrchr(o->build.staging, '/') + 1);
}

/* What was locked may have been removed, and made anew by another, before. */
static bool is_at(int fd, const char *path)
{
        struct stat mine, there;

        return fstat(fd, &mine) == 0 && lstat(path, &there) == 0 && mine.st_ino == there.st_ino &&
                mine.st_dev == there.st_dev;
}

/* What a build that was killed has left is removed by the next of that name. */
static int open_staging(struct order *o, struct rv_error *err)
{
        const char *path = o->build.staging;
        int r;

        for (int i = 0; i < 3; i++) {
                if (mkdir(path, 0755) < 0 && errno != EEXIST)
                        break;
                o->staging_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (o->staging_fd < 0)
                        break;
                if (flock(o->staging_fd, LOCK_EX | LOCK_NB) < 0) {
                        r = -errno;
                        o->staging_fd = rv_close(o->staging_fd);
                        return rv_error_set(err, rv_raise(r), "another build of %s is under way in %s", o->build.name, o->output);
                }
                if (i > 0 && is_at(o->staging_fd, path))
                        return 0;
                if (i == 0)
                        remove_staging(o);      /* its own too: what is there must be new */
                o->staging_fd = rv_close(o->staging_fd);
                errno = EBUSY;
        }
        r = -errno;
        return rv_error_set(err, rv_raise(r), "cannot build in %s: %s; say --output", o->output, strerror(-r));
}

static int prepare(struct order *o, struct rv_error *err)
{
        struct runtime_build *b = &o->build;
        int r = find_output(o, err);

        if (r < 0)
                return r;
        snprintf(b->staging, sizeof(b->staging), "%s/.%s.build", o->output, b->name);
        snprintf(o->target, sizeof(o->target), "%s/%s%s", o->output, b->name, b->is_image ? ".erofs" : "");
        runtime_description_path(o->target, o->description, sizeof(o->description));
        r = runtime_make_tools(b, err);
        if (r == 0)
                r = rv_mkdir_p(o->output, 0755);
        if (r < 0)
                return rv_error_set(err, r, "cannot build in %s: %s; say --output", o->output, strerror(-r));
        if (!o->is_replacing && (access(o->target, F_OK) == 0 || access(o->description, F_OK) == 0))
                return rv_error_set(err, rv_raise(-EEXIST), "there is a runtime %s in %s already; say --replace, or another name", b->name, o->output);
        return open_staging(o, err);
}

/* ---- What came of it ---- */

static int digest(const struct order *o, char ret[RV_TREE_DIGEST_SIZE], struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        char path[sizeof(o->build.staging) + 16];
        int r;

        snprintf(path, sizeof(path), "%s/%s", o->build.staging, o->build.is_image ? "image" : "root");
        fd = open(path, O_RDONLY | O_CLOEXEC);
        r = fd < 0 ? -errno : o->build.is_image ? rv_file_digest(fd, ret) : rv_tree_digest(fd, ret, NULL, err);
        return r < 0 ? rv_error_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

static json_t *text_or_null(const char *text)
{
        return *text ? json_string(text) : json_null();
}

static json_t *describe(const struct order *o, const char *digest_text)
{
        const struct runtime_build *b = &o->build;

        return json_pack("{s:s, s:s, s:s, s:s, s:s, s:O, s:o, s:o, s:I}", "schema", "reeve.runtime/1", "name", b->name, "format", b->is_image ? "erofs" : "directory",
                         "digest", digest_text, "suite", b->suite, "packages", b->packages, "python", text_or_null(b->python), "javascript", text_or_null(b->javascript),
                         "built_at", (json_int_t)(rv_now_us() / 1000000));
}

/* Of two names one takes the other's place, where there is one; what was there goes to STAGING, and with it. */
static int put_in_place(const struct order *o, const char *from, const char *to, struct rv_error *err)
{
        char path[sizeof(o->build.staging) + 64];
        int r;

        snprintf(path, sizeof(path), "%s/%s", o->build.staging, from);
        if (renameat2(AT_FDCWD, path, AT_FDCWD, to, o->is_replacing ? RENAME_EXCHANGE : RENAME_NOREPLACE) == 0 ||
                (o->is_replacing && errno == ENOENT && renameat2(AT_FDCWD, path, AT_FDCWD, to, RENAME_NOREPLACE) == 0))
                return 0;
        r = -errno;
        return rv_error_set(err, rv_raise(r), "cannot put it in its place: %s: %s", to, strerror(-r));
}

static int publish(const struct order *o, const json_t *description, struct rv_error *err)
{
        _cleanup_(rv_freep) char *text = json_dumps(description, JSON_COMPACT);
        char path[sizeof(o->build.staging) + 64];
        int r;

        if (!text)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
        snprintf(path, sizeof(path), "%s/description", o->build.staging);
        r = rv_write_file(path, text, strlen(text), 0644, true);
        if (r < 0)
                return rv_error_set(err, r, "%s: %s", path, strerror(-r));
        if (o->build.is_image) {
                snprintf(path, sizeof(path), "%s/image", o->build.staging);
                (void)chmod(path, 0644);
        }
        /* All of it is on the disk before any of it has its name. */
        if (syncfs(o->staging_fd) < 0)
                return rv_error_set(err, rv_raise(-errno), "%s: %s", o->output, strerror(errno));
        if (tool_was_told())
                return rv_error_set(err, rv_raise(-EINTR), "it was ended by a signal");
        r = put_in_place(o, o->build.is_image ? "image" : "root", o->target, err);
        return r < 0 ? r : put_in_place(o, "description", o->description, err);
}

static int make(struct order *o, json_t **ret_description, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *description = NULL;
        char text[RV_TREE_DIGEST_SIZE];
        int r = runtime_make_root(&o->build, err);

        if (r == 0 && o->build.is_image)
                r = runtime_make_image(&o->build, err);
        on_progress(o, "computing the digest...");
        if (r == 0)
                r = digest(o, text, err);
        if (r < 0)
                return rv_trace(r);
        description = describe(o, text);
        if (!description)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
        r = publish(o, description, err);
        if (r == 0)
                *ret_description = rv_take(&description);
        return r;
}

static int report(const struct order *o, const json_t *description, bool is_json)
{
        const struct runtime_build *b = &o->build;
        const char *digest_text = rv_json_get_string(description, "digest", "");

        if (is_json)
                return print_json(description, "the description");
        print_text("%s: %zu packages of %s, python %s, javascript %s", o->target, json_array_size(b->packages), b->suite, *b->python ? b->python : "none",
                   *b->javascript ? b->javascript : "none");
        print_text("To use it, put into reeve.yaml:");
        print_text("runtimes: { %s: { %s: \"%s\", digest: \"%s\" } }", b->name, b->is_image ? "image" : "root", o->target, digest_text);
        return 0;
}

int runtime_build(int argc, char **argv)
{
        static const struct option table[] = { { "suite", required_argument, NULL, OPT_SUITE }, { "output", required_argument, NULL, OPT_OUTPUT },
                { "format", required_argument, NULL, OPT_FORMAT }, { "mirror", required_argument, NULL, OPT_MIRROR }, { "include", required_argument, NULL, OPT_INCLUDE },
                { "replace", no_argument, NULL, OPT_REPLACE }, AUDIT_OPTION_JSON, AUDIT_OPTIONS_END };
        struct order order = { .build = { .progress = on_progress }, .staging_fd = -EBADF, .begun_us = rv_boot_us() };
        struct audit_options o = { .command = "runtime build", .help = help, .table = table, .n_words_max = 1, .take = take, .ctx = &order };
        _cleanup_(rv_json_unrefp) json_t *description = NULL;
        int status = audit_options_read(&o, argc, argv), r;
        struct rv_error err = { 0 };

        if (status >= 0)
                return status;
        if (o.n_words != 1)
                return usage_error("runtime build", "say which NAME it is to have");
        if (rv_config_check_name(o.words[0]) || o.words[0][0] == '.' || !strcmp(o.words[0], "host"))
                return usage_error("runtime build", "%s cannot be its name: letters, digits, `._-`, and not host", o.words[0]);
        order.build.name = o.words[0];
        order.build.ctx = &order;
        order.is_terminal = isatty(STDERR_FILENO);
        r = tool_signals();
        if (r == 0)
                r = prepare(&order, &err);
        if (r == 0)
                r = make(&order, &description, &err);
        end_progress(&order);
        if (order.staging_fd >= 0)
                remove_staging(&order);
        rv_close(order.staging_fd);
        status = r == 0 ? report(&order, description, o.is_json) : r == -EINTR ? 130 : 1;
        for (char *line = strtok(order.build.said, "\n"); line; line = strtok(NULL, "\n"))
                say("  | %s", line);
        if (r < 0)
                say("runtime build: %s: %s", order.build.name, err.code ? err.message : strerror(-r));
        json_decref(order.build.packages);
        return status;
}
