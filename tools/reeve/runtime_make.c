#include "runtime_make.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "runtime_sources.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* python3-pip and npm bring Python's and Node's other tools; the rest is what every run finds: certificates, time zones, kinds of files. */
#define PACKAGES "python3,python3-pip,nodejs,npm,ca-certificates,tzdata,media-types"
#define KEYRING_HINT "see /etc/apt of this host, or say --mirror"
#define FOUND "/.reeve-build"                /* what the root tells of itself, while it is made */
#define FOUND_BYTES_MAX ((size_t)4 << 20)
#define CONFIG_US (UINT64_C(10) * 1000 * 1000)

int runtime_make_tools(struct runtime_build *b, struct rv_error *err)
{
        int r = tool_find("mmdebstrap", "mmdebstrap", b->mmdebstrap, err);
        char mapper[TOOL_PATH_SIZE];

        if (r == 0 && geteuid() != 0)
                r = tool_find("newuidmap", "uidmap", mapper, err);
        if (r == 0)
                r = tool_find("tar", "tar", b->tar, err);
        if (r == 0 && b->is_image)
                r = tool_find("mkfs.erofs", "erofs-utils", b->mkfs, err);
        return rv_trace(r);
}

/* ---- What apt goes by ---- */

static int write_text(const struct runtime_build *b, const char *name, const struct rv_buf *text, struct rv_error *err)
{
        char path[sizeof(b->staging) + 32];
        int r;

        snprintf(path, sizeof(path), "%s/%s", b->staging, name);
        r = rv_write_file(path, text->data ? text->data : "", text->size, 0644, false);
        return r < 0 ? rv_error_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

static void get_release(const char *otherwise, char *ret, size_t size)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        _cleanup_(rv_closep) int fd = open("/etc/os-release", O_RDONLY | O_CLOEXEC);

        if (fd < 0 || rv_read_fd(fd, 65536, &text) < 0 || !text.size || !sources_release(text.data, ret, size))
                snprintf(ret, size, "%s", otherwise);
}

/* The mirror's main section; or the host's own sources of its release. */
static int write_sources(struct runtime_build *b, bool *ret_has_lines, bool *ret_has_paragraphs, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf lines = { 0 }, paragraphs = { 0 };
        char release[64];
        int r = 0;

        get_release("bookworm", release, sizeof(release));
        if (!b->suite)
                b->suite = strdup(release);
        if (!b->suite)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
        if (b->mirror)
                rv_buf_printf(&lines, "deb %s %s main\n", b->mirror, b->suite);
        else
                r = sources_read("/etc/apt", release, b->suite, &lines, &paragraphs, err);
        if (r == 0)
                r = write_text(b, "lines.list", &lines, err);
        if (r == 0)
                r = write_text(b, "paragraphs.sources", &paragraphs, err);
        *ret_has_lines = lines.size;
        *ret_has_paragraphs = paragraphs.size;
        return r;
}

/* How the host's apt reaches its sources: proxies, certificates, what it takes for too old. Never what it does with packages. */
static bool is_about_access(const char *line, size_t n)
{
        static const char *const beginnings[] = { "Acquire::http:", "Acquire::https:", "Acquire::http ", "Acquire::https ", "Acquire::Retries ",
                "Acquire::ForceIPv4 ", "Acquire::ForceIPv6 ", "Acquire::Check-Valid-Until ", "Acquire::Check-Date " };

        for (size_t i = 0; i < RV_N_ELEMENTS(beginnings); i++)
                if (n > strlen(beginnings[i]) && !strncasecmp(line, beginnings[i], strlen(beginnings[i])))
                        return true;
        return false;
}

static int write_configuration(struct runtime_build *b, struct rv_error *err)
{
        static const char *const argv[] = { "/usr/bin/apt-config", "dump", NULL };
        static const char *const envp[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", NULL };
        struct rv_child c = { .exe_fd = -EBADF,
                .argv = argv,
                .envp = envp,
                .out_max = 1 << 20,
                .err_max = 1024,
                .deadline_us = rv_boot_us() + CONFIG_US };
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };

        rv_buf_puts(&text, "Apt::Install-Recommends \"false\";\n");
        /* Passwords of the sources. */
        rv_buf_puts(&text, "Dir::Etc::netrc \"/etc/apt/auth.conf\";\nDir::Etc::netrcparts \"/etc/apt/auth.conf.d\";\n");
        if (rv_child_run(&c, NULL) == 0 && c.status == 0 && c.out.size)
                for (const char *p = c.out.data; *p;) {
                        size_t n = strcspn(p, "\n");

                        if (is_about_access(p, n))
                                rv_buf_printf(&text, "%.*s\n", (int)n, p);
                        p += n + (p[n] == '\n');
                }
        rv_child_fini(&c);
        return rv_buf_error(&text) < 0 ? rv_error_set(err, -ENOMEM, "out of memory") : write_text(b, "apt.conf", &text, err);
}

/* ---- The root ---- */

/* mmdebstrap's own lines begin with "I: "; what apt and dpkg say is for the case that it fails. */
static void on_line(void *ctx, const char *text)
{
        struct runtime_build *b = ctx;

        if (b->progress && !strncmp(text, "I: ", 3))
                b->progress(b->ctx, text + 3);
}

static int run(struct runtime_build *b, const char *const *argv, const char *const *envp, const char *what,
        struct rv_error *err)
{
        struct tool t = { .argv = argv, .envp = envp, .line = on_line, .ctx = b };
        struct rv_error why = { 0 };
        int r = tool_run(&t, &why);

        if (r == 0 || r == -EINTR)
                return r == 0 ? 0 : rv_error_set(err, r, "%s", why.message);
        memcpy(b->said, t.tail, sizeof(b->said));
        return rv_error_set(err, r, "%s: %s", what, why.message);
}

/* Run by mmdebstrap with the root as $1, in it or on it. The host's /dev is mounted in it then: only what is named is touched. */
static const char *const hooks[] = {
        "--customize-hook=mkdir \"$1\"" FOUND " && chroot \"$1\" dpkg-query -W -f '${Package} ${Version}\\n' >\"$1\"" FOUND "/packages",
        "--customize-hook=for t in python3 node; do chroot \"$1\" sh -c \"command -v $t >/dev/null || exit 0; $t --version\" >\"$1\"" FOUND "/$t || exit 1; done",
        ("--customize-hook=find \"$1\"/usr -name __pycache__ -type d -prune -exec rm -rf {} +; [ ! -x \"$1\"/usr/bin/python3 ] || "
         "chroot \"$1\" sh -c 'python3 -m compileall -q -j0 --invalidation-mode unchecked-hash /usr/lib/python3* >/dev/null 2>&1 || true'"),
};

/* What no run sees, or what differs from build to build, is not unpacked. */
static const char *const left_out[] = { "./boot/*", "./dev/*", "./etc/apt", "./etc/hostname", "./etc/resolv.conf", "./etc/machine-id", "./etc/*-", "./etc/shadow", "./etc/gshadow",
        "./etc/cron.*", "./etc/init.d", "./etc/rc?.d", "./var/lib/apt", "./var/cache/*", "./var/log/*", "./var/lib/dpkg/*-old", "./var/lib/dpkg/info", "./var/lib/systemd",
        "./usr/share/bash-completion", "./usr/share/bug", "./usr/share/info", "./usr/share/lintian" };

static const char *const excluded[] = { "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/lintian/*", "/usr/include/*", "/usr/lib/*.a" };

static const char *const handed_on[] = { "http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY" };

#define WORDS_MAX 96

struct words {
        const char *items[WORDS_MAX];
        size_t n;
        struct rv_buf texts[16];
        size_t n_texts;
};

static void words_fini(struct words *w)
{
        for (size_t i = 0; i < w->n_texts; i++)
                rv_buf_fini(&w->texts[i]);
}

static void add(struct words *w, const char *word)
{
        rv_require(w->n + 1 < RV_N_ELEMENTS(w->items));
        w->items[w->n++] = word;
}

static void addf(struct words *w, const char *before, const char *middle, const char *after)
{
        struct rv_buf *text = &w->texts[w->n_texts];

        rv_require(w->n_texts < RV_N_ELEMENTS(w->texts));
        w->n_texts++;
        rv_buf_printf(text, "%s%s%s", before, middle, after);
        add(w, rv_buf_error(text) < 0 ? "" : text->data);
}

static void make_environment(const struct runtime_build *b, struct words *env)
{
        add(env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
        add(env, "LC_ALL=C.UTF-8");
        add(env, "DEBIAN_FRONTEND=noninteractive");
        add(env, "SOURCE_DATE_EPOCH=1");     /* the same packages give the same files */
        add(env, "PYTHONHASHSEED=0");
        addf(env, "HOME=", b->staging, "");
        /* So that it goes with the rest, however this ends; a user's root is made by other ids, which may not get here. */
        if (geteuid() == 0)
                addf(env, "TMPDIR=", b->staging, "");
        for (size_t i = 0; i < RV_N_ELEMENTS(handed_on); i++)
                if (getenv(handed_on[i]))
                        addf(env, handed_on[i], "=", getenv(handed_on[i]));
}

static int make_tar(struct runtime_build *b, struct rv_error *err)
{
        _cleanup_(words_fini) struct words argv = { .n = 0 }, env = { .n = 0 };
        bool has_lines = false, has_paragraphs = false;
        int r = write_sources(b, &has_lines, &has_paragraphs, err);

        if (r == 0)
                r = write_configuration(b, err);
        if (r < 0)
                return rv_trace(r);
        add(&argv, b->mmdebstrap);
        add(&argv, "--variant=essential");
        add(&argv, geteuid() == 0 ? "--mode=root" : "--mode=unshare");
        add(&argv, "--format=tar");
        add(&argv, "--skip=output/dev");
        addf(&argv, "--aptopt=", b->staging, "/apt.conf");
        addf(&argv, "--include=" PACKAGES, b->include ? "," : "", b->include ? b->include : "");
        for (size_t i = 0; i < RV_N_ELEMENTS(excluded); i++)
                addf(&argv, "--dpkgopt=path-exclude=", excluded[i], "");
        add(&argv, "--dpkgopt=path-exclude=/usr/share/doc/*");
        add(&argv, "--dpkgopt=path-include=/usr/share/doc/*/copyright");
        for (size_t i = 0; i < RV_N_ELEMENTS(hooks); i++)
                add(&argv, hooks[i]);
        add(&argv, b->suite);
        addf(&argv, b->staging, "/root.tar", "");
        if (has_lines)
                addf(&argv, b->staging, "/lines.list", "");
        if (has_paragraphs)
                addf(&argv, b->staging, "/paragraphs.sources", "");
        make_environment(b, &env);
        return run(b, argv.items, env.items, "the packages could not be installed (" KEYRING_HINT ")", err);
}

static int unpack(struct runtime_build *b, struct rv_error *err)
{
        char tar[sizeof(b->staging) + 16], root[sizeof(b->staging) + 16];
        static const char *const envp[] = { "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", NULL };
        _cleanup_(words_fini) struct words argv = { .n = 0 };
        mode_t before;
        int r;

        snprintf(tar, sizeof(tar), "%s/root.tar", b->staging);
        snprintf(root, sizeof(root), "%s/root", b->staging);
        if (mkdir(root, 0755) < 0) {
                r = -errno;
                return rv_error_set(err, rv_raise(r), "%s: %s", root, strerror(-r));
        }
        if (b->progress)
                b->progress(b->ctx, "unpacking the root...");
        for (size_t i = 0; i < 8; i++)
                add(&argv, (const char *[]){ b->tar, "-xf", tar, "-C", root, "--no-same-owner", "--no-same-permissions", "--anchored" }[i]);
        add(&argv, "--wildcards");
        for (size_t i = 0; i < RV_N_ELEMENTS(left_out); i++) {
                add(&argv, "--exclude");
                add(&argv, left_out[i]);
        }
        before = umask(022);
        r = run(b, argv.items, envp, "the root could not be unpacked", err);
        umask(before);
        (void)unlink(tar);
        return r;
}

/* ---- What is in it ---- */

static int read_found(const struct runtime_build *b, const char *name, struct rv_buf *out, struct rv_error *err)
{
        char path[sizeof(b->staging) + 64];
        int r;

        snprintf(path, sizeof(path), "%s/root" FOUND "/%s", b->staging, name);
        r = rv_read_file_at(AT_FDCWD, path, FOUND_BYTES_MAX, out);
        (void)unlink(path);
        return r < 0 ? rv_error_set(err, r, "the root does not say what is in it: %s: %s", path, strerror(-r)) : 0;
}

static int read_version(const struct runtime_build *b, const char *name, char *ret, size_t size, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        const char *p;
        int r = read_found(b, name, &text, err);

        if (r < 0)
                return r;
        p = text.data ? text.data : "";
        p += strcspn(p, "0123456789\n");
        snprintf(ret, size, "%.*s", (int)strspn(p, "0123456789abcdefghijklmnopqrstuvwxyz.+-"), p);
        return 0;
}

/* dpkg-query sorts by name. */
static int read_packages(struct runtime_build *b, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        char name[256], version[256];
        int r = read_found(b, "packages", &text, err);

        b->packages = json_array();
        for (const char *p = text.data; r == 0 && p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
                if (sscanf(p, "%255s %255s", name, version) == 2)
                        json_array_append_new(b->packages, json_pack("{s:s, s:s}", "name", name, "version", version));
        return r;
}

int runtime_make_root(struct runtime_build *b, struct rv_error *err)
{
        char found[sizeof(b->staging) + 32];
        int r = make_tar(b, err);

        if (r == 0)
                r = unpack(b, err);
        if (r == 0)
                r = read_packages(b, err);
        if (r == 0)
                r = read_version(b, "python3", b->python, sizeof(b->python), err);
        if (r == 0)
                r = read_version(b, "node", b->javascript, sizeof(b->javascript), err);
        if (r < 0)
                return rv_trace(r);
        snprintf(found, sizeof(found), "%s/root" FOUND, b->staging);
        return rmdir(found) < 0 ? rv_error_set(err, rv_raise(-errno), "%s: %s", found, strerror(errno)) : 0;
}

int runtime_make_image(struct runtime_build *b, struct rv_error *err)
{
        char root[sizeof(b->staging) + 16], image[sizeof(b->staging) + 16];
        const char *const argv[] = { b->mkfs, "-T0", "--all-root", "-x-1", "-U", "00000000-0000-0000-0000-000000000000", image, root, NULL };
        static const char *const envp[] = { "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", NULL };

        snprintf(root, sizeof(root), "%s/root", b->staging);
        snprintf(image, sizeof(image), "%s/image", b->staging);
        if (b->progress)
                b->progress(b->ctx, "making the image...");
        return run(b, argv, envp, "the image could not be made", err);
}
