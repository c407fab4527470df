#include "package/registry_credentials.h"
#include "package/registry_private.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/fetch.h"
#include "base/hash.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

/*
 * Two questions, whose answers are kept below the state directory: which index is built into the tool (until the tool's
 * file changes), and which hosts an index's files come from (for a day).
 */

#define KEPT_DIR "registries"
#define KEPT_BYTES_MAX ((size_t)64 << 10)
#define DAY_US (UINT64_C(86400) * 1000000)
#define PAGE_BYTES_MAX ((size_t)8 << 20)

struct tool {
        const char *files[3];            /* one of which is the tool: a change of it ends what is kept */
        const char *argv[5];
        const char *source;
};

static const struct tool tools[] = {
        [RV_LANGUAGE_PYTHON] = {
                { "/usr/lib/python3/dist-packages/pip/_internal/models/index.py", "/usr/bin/python3" },
                { "/usr/bin/python3", "-I", "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url); print('https://' + PyPI.file_storage_domain)" },
                "pip's own",
        },
        [RV_LANGUAGE_JAVASCRIPT] = {
                { "/usr/lib/node_modules/npm/package.json", "/usr/share/nodejs/npm/package.json", "/usr/bin/npm" },
                { "/usr/bin/npm", "config", "get", "registry" },
                "npm's own",
        },
};

/* ---- What is kept ---- */

static void name_kept(const struct rv_registry *r, const char *what, char ret[64])
{
        char digest[RV_SHA256_HEX_SIZE];

        rv_sha256_hex(what, strlen(what), digest);
        snprintf(ret, 64, KEPT_DIR "/%s-%.16s", rv_language_name(r->language), digest);
}

/* Lines: what they answer, then an address each. NULL: nothing is kept. */
static char *read_kept(const struct rv_registry *r, int state_fd, const char *what)
{
        struct rv_buf text = { 0 };
        size_t n = strlen(what);
        char name[64];

        name_kept(r, what, name);
        if (rv_read_file_at(state_fd, name, KEPT_BYTES_MAX, &text) == 0 && text.size > n &&
                memcmp(text.data, what, n) == 0 && text.data[n] == '\n' && memchr(text.data, 0, text.size) == NULL) {
                memmove(text.data, text.data + n + 1, text.size - n);
                return text.data;
        }
        rv_buf_fini(&text);
        return NULL;
}

static void keep(const struct rv_registry *r, int state_fd, const char *what, const char *lines)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        char name[64];

        name_kept(r, what, name);
        rv_buf_printf(&text, "%s\n%s", what, lines);
        (void)mkdirat(state_fd, KEPT_DIR, 0700);
        if (rv_buf_error(&text) == 0)
                (void)rv_write_file_at(state_fd, name, text.data, text.size, 0600, false);
}

/* ---- The tool ---- */

static bool describe_tool(const struct tool *tool, char *ret, size_t size)
{
        struct stat st;

        for (size_t i = 0; i < RV_N_ELEMENTS(tool->files) && tool->files[i]; i++)
                if (stat(tool->files[i], &st) == 0) {
                        snprintf(ret, size, "tool %s %lld.%09ld %lld", tool->files[i], (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                                 (long long)st.st_size);
                        return true;
                }
        return false;
}

/* It says an address a line. The caller frees. */
static char *ask_tool(const struct tool *tool)
{
        static const char *const envp[] = { "PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C.UTF-8", "npm_config_update_notifier=false",
                                            "npm_config_logs_max=0", "npm_config_cache=/nonexistent", NULL };
        struct rv_child child = { .exe_fd = -EBADF,
                .argv = tool->argv,
                .envp = envp,
                .out_max = 4096,
                .deadline_us = rv_boot_us() + RV_REGISTRY_MS * 1000 };
        char *text = NULL;

        if (rv_child_run(&child, NULL) == 0 && WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0 &&
                child.out.size && memchr(child.out.data, 0, child.out.size) == NULL)
                text = strndup(child.out.data, child.out.size);
        rv_child_fini(&child);
        return text;
}

/* The tool's own index, and behind it the hosts of its files. */
static char *find_own(const struct rv_registry *r, int state_fd)
{
        const struct tool *tool = &tools[r->language];
        char what[512], *lines;

        if (!describe_tool(tool, what, sizeof(what)))
                return NULL;
        lines = read_kept(r, state_fd, what);
        if (lines)
                return lines;
        lines = rv__registry_read_own(r->language, "");
        if (!lines)
                lines = ask_tool(tool);
        if (lines)
                keep(r, state_fd, what, lines);
        return lines;
}

static const char *next_line(char **rest)
{
        char *line;

        while ((line = strsep(rest, "\r\n")) != NULL)
                if (*line)
                        return line;
        return NULL;
}

static bool is_same_index(const char *a, const char *b)
{
        size_t n = strlen(a), k = strlen(b);

        while (n && a[n - 1] == '/')
                n--;
        while (k && b[k - 1] == '/')
                k--;
        return n == k && memcmp(a, b, n) == 0;
}

static void take_own(struct rv_registry *r, int state_fd)
{
        _cleanup_(rv_freep) char *lines = find_own(r, state_fd);
        char *rest = lines;
        const char *own = lines ? next_line(&rest) : NULL, *file;

        if (!own)
                return;
        if (!r->index)
                rv__registry_set_index(r, own, tools[r->language].source);
        if (!r->index || !is_same_index(r->index, own))
                return;
        while ((file = next_line(&rest)) != NULL)
                rv__registry_add_host(r, file);
        r->has_files = true;
}

/* ---- The index's page ---- */

static void ask_index(struct rv_registry *r, int state_fd, int helper_fd, const char *what)
{
        char url[1024], line[600], authorization[RV_REGISTRY_AUTHORIZATION_SIZE];
        const char *const headers[] = { "Accept: application/vnd.pypi.simple.v1+json, text/html;q=0.5", authorization };
        struct rv_fetch_request q = { .method = "GET", .url = url, .headers = headers, .max_bytes = PAGE_BYTES_MAX,
                                      .timeout_ms = RV_REGISTRY_MS, .ca = r->ca };
        _cleanup_(rv_fetch_answer_fini) struct rv_fetch_answer answer = { 0 };
        _cleanup_(rv_buf_fini) struct rv_buf lines = { 0 };
        size_t n_before = r->n_hosts, n = strlen(r->index);
        char proxy[RV_DOMAIN_SIZE + 24];
        int e;

        snprintf(proxy, sizeof(proxy), strchr(r->proxy.host ? r->proxy.host : "", ':') ? "http://[%s]:%u" : "http://%s:%u", r->proxy.host ? r->proxy.host : "",
                 r->proxy.port);
        q.proxy = r->proxy.host ? proxy : NULL;
        snprintf(url, sizeof(url), "%s%spip/", r->index, n && r->index[n - 1] == '/' ? "" : "/");
        q.n_headers = rv_registry_authorization(r, url, authorization) ? 2 : 1;
        e = rv_fetch(helper_fd, &q, &answer, NULL);
        explicit_bzero(authorization, sizeof(authorization));
        if (e < 0 || answer.code != RV_FETCH_OK || answer.status != 200 || !answer.body.size)
                return;
        (void)rv_registry_page_hosts(r, answer.body.data, answer.body.size);
        r->has_files = true;
        rv_buf_puts(&lines, "\n");
        for (size_t i = n_before; i < r->n_hosts; i++) {
                snprintf(line, sizeof(line), strchr(r->hosts[i].host, ':') ? "https://[%s]:%u\n" : "https://%s:%u\n", r->hosts[i].host, r->hosts[i].port);
                rv_buf_puts(&lines, line);
        }
        if (rv_buf_error(&lines) == 0)
                keep(r, state_fd, what, lines.data);
}

static void take_page(struct rv_registry *r, int state_fd, int helper_fd)
{
        _cleanup_(rv_freep) char *lines = NULL;
        char what[1200], *rest;
        const char *line;

        snprintf(what, sizeof(what), "page %s %llu", r->index, (unsigned long long)(rv_now_us() / DAY_US));
        lines = rest = read_kept(r, state_fd, what);
        if (!lines && helper_fd >= 0)
                ask_index(r, state_fd, helper_fd, what);
        if (!lines)
                return;
        while ((line = next_line(&rest)) != NULL)
                rv__registry_add_host(r, line);
        r->has_files = true;
}

void rv_registry_complete(struct rv_registry *r, int state_fd, int helper_fd)
{
        size_t n_named;

        /* npm's files come from the index's host, if nothing else is said. */
        if (r->language == RV_LANGUAGE_JAVASCRIPT && r->index)
                r->has_files = true;
        if (!r->has_files || !r->index)
                take_own(r, state_fd);
        rv__registry_settle_proxy(r);
        if (r->proxy_fault || r->language != RV_LANGUAGE_PYTHON || !r->index || r->has_files)
                return;
        n_named = r->n_hosts;
        take_page(r, state_fd, helper_fd);
        for (size_t i = n_named; i < r->n_hosts; i++)
                r->hosts[i].is_learned = true;
}
