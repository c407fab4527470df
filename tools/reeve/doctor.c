#include "package.h"
#include "reeve.h"
#include "runtime.h"
#include "session.h"
#include "start.h"

#include "base/child.h"
#include "base/clock.h"
#include "store/packages_list.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>

/*
 * Tries what a run needs, each for real: the session a run has (configuration, state, log, spawner), then a
 * program in each language through the whole pipeline, then the refusals that must hold inside.
 */

static const char help[] =
        "usage: reeve doctor [--json] [--config FILE] [--tenant NAME]\n"
        "\n"
        "Tries what a run needs on this host, each part for real, and prints what is missing\n"
        "and how to get it. Exit status 0: runs work; 1: something is missing; 2: usage.\n";

#define UV_TIMEOUT_US (UINT64_C(10) * 1000000)

enum grade { GOOD, MISSING, NOTE };

struct doctor {
        bool is_json;
        json_t *rows;
        unsigned n_missing;
        struct session session;
        struct rv_run *run;
        struct rv_outcome copy;      /* of the trial run's; texts are borrowed from it */
        bool is_ok, is_denied;       /* denied: by a policy that works */
        char text[2048];
};

static void row(struct doctor *d, enum grade grade, const char *name, const char *text)
{
        static const char *const words[] = { [GOOD] = "ok", [MISSING] = "missing", [NOTE] = "note" };

        d->n_missing += grade == MISSING;
        if (d->is_json)
                json_array_append_new(d->rows, json_pack("{s:s, s:s, s:s}", "probe", name, "state", words[grade], "text", text));
        else
                print_text("%-8s %-22s %s", words[grade], name, text);
}

/* ---- Trial runs ---- */

static void on_answered(void *ctx, struct rv_run *run)
{
        struct doctor *d = ctx;
        const struct rv_problem *problem = rv_run_problem(run);
        const struct rv_outcome *o = rv_run_outcome(run);

        if (problem) {
                snprintf(d->text, sizeof(d->text), "%s: %s", problem->title, problem->detail);
                return;
        }
        d->is_ok = o->reason.code == RV_CODE_OK;
        d->is_denied = o->reason.status == RV_STATUS_BLOCKED && o->reason.phase == RV_PHASE_DECIDE &&
                o->reason.code != RV_CODE_POLICY_ERROR;
        if (d->is_ok)
                snprintf(d->text, sizeof(d->text), "%.*s", (int)strcspn(o->out->text.data ? o->out->text.data : "", "\n"),
                         o->out->text.data ? o->out->text.data : "");
        else
                snprintf(d->text, sizeof(d->text), "%s: %s", rv_code_name(o->reason.code), o->reason.message);
}

static void on_released(void *ctx, struct rv_run *run)
{
        struct doctor *d = ctx;

        (void)run;
        rv_loop_stop(&d->session.loop);
}

/* The program says in one line what it found. */
static bool try_run(struct doctor *d, const char *language, const char *network, const char *source)
{
        _cleanup_(rv_json_unrefp) json_t *request = json_pack("{s:s, s:s, s:i, s:{s:s}}", "language", language, "source", source, "timeout_s", 20,
                                                              "network", "mode", network);
        struct rv_run_input input = { .tenant = d->session.tenant->name,
                .bundle = d->session.bundle,
                .bundle_error = d->session.bundle_error.message,
                .shadow = d->session.shadow,
                .shadow_error = d->session.shadow_error.message,
                .unavailable = session_unavailable(&d->session),
                .value = request,
                .ctx = d,
                .answered = on_answered,
                .released = on_released };

        d->is_ok = false;
        d->text[0] = 0;
        if (rv_run_start(&d->session.core, &input, &d->run) < 0)
                return false;
        rv_loop_run(&d->session.loop);
        rv_run_free(d->run);
        d->run = NULL;
        return d->is_ok;
}

static const char python_probe[] =
        "import platform, socket, os\n"
        "status = dict(l.split(':', 1) for l in open('/proc/self/status'))\n"
        "assert int(status['CapBnd'], 16) == 0 and status['Seccomp'].strip() == '2' and os.getuid() != 0\n"
        "try:\n"
        "    socket.create_connection(('192.0.2.1', 9), timeout=2)\n"
        "    raise SystemExit('a connection went out')\n"
        "except OSError:\n"
        "    pass\n"
        "try:\n"
        "    open('/usr/reeve-probe', 'w')\n"
        "    raise SystemExit('/usr is writable')\n"
        "except OSError:\n"
        "    pass\n"
        "print('Python', platform.python_version(), 'runs; no capability, no network, /usr read-only')\n";

/* Nothing outside is asked: what answers is the gate. */
static const char network_probe[] =
        "import socket\n"
        "s = socket.create_connection(('169.254.169.254', 80), timeout=5)\n"
        "try:\n"
        "    s.sendall(b'GET / HTTP/1.1\\r\\nHost: 169.254.169.254\\r\\n\\r\\n')\n"
        "    answer = s.recv(100)\n"
        "except ConnectionError:\n"
        "    answer = b''\n"
        "if answer and b' 403 ' not in answer:\n"
        "    raise SystemExit('a connection to the metadata address went out')\n"
        "print('the gate answers; an address of clouds\\' metadata is refused')\n";

static const char javascript_probe[] = "console.log('Node ' + process.version + ' runs')\n";

static void probe_runs(struct doctor *d)
{
        static const struct {
                const char *name, *language, *network, *source;
        } trials[] = {
                { "run (python)", "python", "none", python_probe },
                { "run (javascript)", "javascript", "none", javascript_probe },
                { "run (network)", "python", "any", network_probe },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(trials); i++) {
                bool is_ok = try_run(d, trials[i].language, trials[i].network, trials[i].source);

                row(d, is_ok ? GOOD : d->is_denied ? NOTE : MISSING, trials[i].name, d->text);
        }
}

/* ---- What the spawner finds: asked of one of its own, with the privilege that this process still has ---- */

static void probe_host(struct doctor *d, const char *config)
{
        char line[2048], *probe, *text;
        _cleanup_(rv_freep) char *file = NULL;
        struct rv_error err = { 0 };
        pid_t pid = -1;
        FILE *f = NULL;
        int fd;

        if (rv_config_find(config, &file, &err) == 0 && spawner_ask(file, SPAWNER_EXPLAIN, &fd, &pid, &err) == 0)
                f = fdopen(fd, "r");
        if (!f) {
                row(d, MISSING, "spawner", err.message);
                return;
        }
        while (fgets(line, sizeof(line), f)) {
                line[strcspn(line, "\n")] = 0;
                probe = strchr(line, '\t');
                text = probe ? strchr(probe + 1, '\t') : NULL;
                if (!text)
                        continue;
                *probe++ = 0;
                *text++ = 0;
                row(d, !strcmp(line, "ok") ? GOOD : !strcmp(line, "note") ? NOTE : MISSING, probe, text);
        }
        fclose(f);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

/* With the privilege that this process still has, which images need. */
static void probe_runtimes(struct doctor *d, const char *config)
{
        _cleanup_(rv_json_unrefp) json_t *all = NULL;
        struct rv_error err = { 0 };
        const json_t *one;
        size_t i;

        if (runtime_ask(config, &all, &err) < 0)
                return;         /* a configuration that cannot be read is told below */
        json_array_foreach (all, i, one) {
                bool is_usable = !strcmp(rv_json_get_string(one, "state", ""), "usable");
                const char *digest = rv_json_get_string(one, "digest", NULL);
                char name[96], text[2048];

                snprintf(name, sizeof(name), "runtime %.80s", rv_json_get_string(one, "name", ""));
                snprintf(text, sizeof(text), "%s %.500s, python %s, javascript %s%s%s", rv_json_get_string(one, "format", ""), rv_json_get_string(one, "path", ""),
                         rv_json_get_string(one, "python", "none"), rv_json_get_string(one, "javascript", "none"), digest ? ", " : "", digest ? digest : "");
                row(d, is_usable ? GOOD : MISSING, name, is_usable ? text : rv_json_get_string(one, "text", ""));
        }
}

/* ---- The session ---- */

static int probe_session(struct doctor *d, const char *config, const char *tenant)
{
        struct session *s = &d->session;
        struct rv_error err = { 0 };
        bool is_log;
        char text[2048];

        if (session_prepare(s, config, tenant, &err) < 0) {
                row(d, MISSING, "configuration", err.message);
                return 1;
        }
        snprintf(text, sizeof(text), "%s; tenant %s, backend %s, runtime %s", *s->config->file ? s->config->file : "built-in defaults",
                 s->tenant->name, s->tenant->backend, s->tenant->runtime);
        row(d, GOOD, "configuration", text);
        if (s->bundle)
                snprintf(text, sizeof(text), "%s, digest %.16s…", s->tenant->policy ? s->tenant->policy : "the default bundle", rv_bundle_digest(s->bundle));
        row(d, s->bundle ? GOOD : MISSING, "policy", s->bundle ? text : s->bundle_error.message);
        for (int i = RV_LANGUAGE_PYTHON; i <= RV_LANGUAGE_JAVASCRIPT; i++)
                (void)session_find_registries(s, (enum rv_language)i);
        (void)session_want_packages(s);
        if (session_settle(s, &is_log, &err) < 0) {
                row(d, MISSING, is_log ? "audit log" : "loop", err.message);
                return 1;
        }
        snprintf(text, sizeof(text), "%s/audit, log %s, written as uid %u", s->config->state_dir, rv_log_id(s->core.log), (unsigned)s->uid);
        row(d, GOOD, "audit log", text);
        return 0;
}

static const char *const tool_probes[] = {
        [RV_LANGUAGE_PYTHON] = "try:\n"
                               "    import pip\n"
                               "    print('pip', pip.__version__, 'is there in mode registries')\n"
                               "except ImportError:\n"
                               "    print('none in mode registries: the runtime has no pip; install it (Debian: python3-pip)')\n",
        [RV_LANGUAGE_JAVASCRIPT] = "const fs = require('fs');\n"
                                   "try {\n"
                                   "    const npm = JSON.parse(fs.readFileSync(require('path').resolve(fs.realpathSync('/usr/bin/npm'), '../../package.json')));\n"
                                   "    console.log('npm ' + npm.version + ' is there in mode registries');\n"
                                   "} catch {\n"
                                   "    console.log('none in mode registries: the runtime has no npm; install it (Debian: npm)');\n"
                                   "}\n",
};

static void probe_tool(struct doctor *d, enum rv_language language)
{
        bool is_ok = try_run(d, rv_language_name(language), "registries", tool_probes[language]);

        row(d, is_ok && strncmp(d->text, "none ", 5) != 0 ? GOOD : is_ok || d->is_denied ? NOTE : MISSING, language == RV_LANGUAGE_PYTHON ? "pip" : "npm", d->text);
}

/* Where the packages of each language come from: what a run in network mode registries may reach. */
static void probe_registries(struct doctor *d)
{
        for (int i = RV_LANGUAGE_PYTHON; i <= RV_LANGUAGE_JAVASCRIPT; i++) {
                struct rv_registry *r = d->session.registries[i];
                char name[32], text[2048];
                size_t n;

                if (!r)
                        continue;
                snprintf(name, sizeof(name), "registry (%s)", rv_language_name(r->language));
                session_complete_registry(&d->session, r);
                if (!r->index) {
                        snprintf(text, sizeof(text), "none is known; set registries.%s.index", rv_language_name(r->language));
                        row(d, NOTE, name, text);
                        continue;
                }
                n = (size_t)snprintf(text, sizeof(text), "%.500s, by %.300s; hosts", r->index, r->source ? r->source : "?");
                for (size_t k = 0; k < r->n_hosts && n < sizeof(text); k++)
                        n += (size_t)snprintf(text + n, sizeof(text) - n, " %s:%u", r->hosts[k].host, r->hosts[k].port);
                if (!r->has_files && n < sizeof(text))
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "; the hosts of files are not known: set registries.%s.files", rv_language_name(r->language));
                if (r->ca && n < sizeof(text))
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "; certificates %.300s", r->ca);
                if (r->proxy.host && n < sizeof(text))
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "; through %s:%u", r->proxy.host, r->proxy.port);
                if (r->proxy_fault && n < sizeof(text))
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "; its proxy cannot be used: %s", r->proxy_fault);
                if (r->find_links && n < sizeof(text))
                        snprintf(text + n, sizeof(text) - n, "; find-links %.300s", r->find_links);
                row(d, r->proxy_fault ? MISSING : r->has_files ? GOOD : NOTE, name, text);
                probe_tool(d, r->language);
        }
}

/* ---- What finds packages, and where they are kept ---- */

/* "uv 0.9.1 (…)" of `uv --version`, without privilege and without environment. */
static bool ask_uv(const char *path, char *ret, size_t size)
{
        struct rv_child c = { .exe_fd = -EBADF, .argv = (const char *const[]){ path, "--version", NULL }, .out_max = 200, .deadline_us = rv_boot_us() + UV_TIMEOUT_US };
        struct rv_error err = { 0 };
        bool is_good = rv_child_run(&c, &err) == 0 && c.status == 0 && c.out.size;

        if (is_good)
                snprintf(ret, size, "%.*s", (int)strcspn(c.out.data, "\n"), c.out.data);
        else
                snprintf(ret, size, "%.200s", err.code ? err.message : "it fails");
        rv_child_fini(&c);
        return is_good;
}

/* The row `pip` says whether that is there. */
static void probe_uv(struct doctor *d)
{
        const struct rv_config *config = d->session.config;
        const char *path = rv_config_uv(config), *named = config->packages.uv ? config->packages.uv : "/usr/bin/uv";
        bool is_asked_for = config->packages.uv || strcmp(config->packages.resolver, "uv") == 0;
        char text[1024], version[256];

        if (strcmp(config->packages.resolver, "pip") == 0) {
                row(d, NOTE, "uv", "not used: packages.resolver says pip");
        } else if (!path) {
                snprintf(text, sizeof(text), is_asked_for ? "%.500s cannot be executed by this user: install uv there, or name another by packages.uv"
                                                          : "none: Python packages are found by pip, which takes longer; install uv as %.500s, or name it by packages.uv", named);
                row(d, is_asked_for ? MISSING : NOTE, "uv", text);
        } else {
                bool is_good = ask_uv(path, version, sizeof(version));

                if (is_good)
                        snprintf(text, sizeof(text), "%.200s, %.500s, finds Python packages", version, path);
                else
                        snprintf(text, sizeof(text), "%.500s: %.200s", path, version);
                row(d, is_good ? GOOD : MISSING, "uv", text);
        }
}

static void probe_store(struct doctor *d)
{
        _cleanup_(rv_store_list_fini) struct rv_store_list list = { 0 };
        char text[2048], size[PACKAGE_TEXT_SIZE], most[PACKAGE_TEXT_SIZE];
        const struct session *s = &d->session;
        struct rv_error err = { 0 };

        if (s->fetch_fd < 0 || s->unpack_fd < 0)
                row(d, MISSING, "package helpers", s->fetch_fd < 0 ? "reeve-fetch is not where reeve is installed: install reeve whole"
                                                                   : "reeve-unpack is not where reeve is installed: install reeve whole");
        if (rv_store_list(s->core.store, &list, &err) < 0) {
                row(d, MISSING, "package store", err.message);
                return;
        }
        snprintf(text, sizeof(text), "%.1000s/packages: %zu %s, %s of %s (packages.store_max); %zu %s held", s->config->state_dir, list.n_layers, list.n_layers == 1 ? "layer" : "layers",
                 package_size_text(list.layers_bytes, size), package_size_text(s->config->packages.store_max_bytes, most), list.n_locks, list.n_locks == 1 ? "lock" : "locks");
        row(d, list.layers_bytes > s->config->packages.store_max_bytes ? NOTE : GOOD, "package store", text);
}

static void probe_sink(struct doctor *d)
{
        const struct rv_config_sink *c = &d->session.config->audit.sink;
        char text[2048], last[RV_ERROR_MESSAGE_MAX] = "";
        struct rv_error err = { 0 };
        uint64_t lag = 0;

        if (!d->session.sink)
                return;
        if (rv_sink_lag(d->session.core.log, &lag, &err) < 0) {
                row(d, MISSING, "audit sink", err.message);
                return;
        }
        (void)rv_sink_last_error(d->session.core.log, last, sizeof(last));
        snprintf(text, sizeof(text), "%s, %s; %llu bytes of the log not delivered, %llu allowed%s%s", rv_sink_name(d->session.sink),
                 c->has_records ? "every record" : "checkpoints", (unsigned long long)lag, (unsigned long long)c->lag_max_bytes, *last ? "; last error: " : "", last);
        row(d, lag > c->lag_max_bytes ? MISSING : *last ? NOTE : GOOD, "audit sink", text);
}

static void probe_capabilities(struct doctor *d)
{
        static const char *const names[] = {
#define X(name, text) #name,
                RV_CAPABILITIES(X)
#undef X
        };
        struct rv_manifest m;
        const struct rv_backend *backend = d->session.core.backends[0].backend;

        backend->can(d->session.core.backends[0].state, &m);
        for (int i = 0; i < RV_CAPABILITY_MAX_; i++)
                if (m.capabilities[i].grade != RV_GRADE_ENFORCED)
                        row(d, NOTE, names[i], m.capabilities[i].reason);
}

/* ---- The signing key ---- */

static void probe_key(struct doctor *d)
{
        struct rv_sign_request q = { .kind = RV_SIGN_QUERY, .flags = RV_SIGN_LOOK_ONLY };
        struct rv_checkpoint_key key = { 0 };
        char text[sizeof(d->text)], id_hex[9];
        struct rv_sign_answer a;
        uint8_t id[4];
        int r;

        memcpy(q.log_id, rv_log_id(d->session.core.log), sizeof(q.log_id));
        r = session_ask(&d->session, &q, &a);
        if (r < 0 || a.code != RV_SIGN_OK) {
                row(d, MISSING, "signing key", r < 0 ? strerror(-r) : a.text);
                return;
        }
        memcpy(key.log_id, q.log_id, sizeof(key.log_id));
        memcpy(key.public_key, a.key, sizeof(key.public_key));
        rv_checkpoint_key_id(&key, id);
        rv_hex(id, sizeof(id), id_hex);
        snprintf(text, sizeof(text), "%s, key id %s, %s; the last checkpoint covers %llu records%s", a.path, id_hex,
                 a.is_beside_state ? "beside the log, so that nothing outside vouches for it (audit.key puts it elsewhere)" : "apart from the log",
                 (unsigned long long)a.size, a.has_next_key ? "; a change of keys was interrupted, `reeve audit rotate` finishes it" : "");
        row(d, a.has_next_key || a.is_beside_state ? NOTE : GOOD, "signing key", text);
}

/* The trial runs' records, as those of any run. */
static void seal(struct doctor *d)
{
        struct rv_error err = { 0 };

        if (session_seal(&d->session, RV_SEAL_NEW, &err) == 0)
                probe_key(d);
        else
                row(d, MISSING, "signing key", err.message);
}

static int parse(int argc, char **argv, struct doctor *d, const char **ret_config, const char **ret_tenant)
{
        for (int i = 1; i < argc; i++) {
                if (!strcmp(argv[i], "--json"))
                        d->is_json = true;
                else if (!strcmp(argv[i], "--config") && i + 1 < argc)
                        *ret_config = argv[++i];
                else if (!strcmp(argv[i], "--tenant") && i + 1 < argc)
                        *ret_tenant = argv[++i];
                else
                        return usage_error("doctor", "unknown argument %s", argv[i]);
        }
        return 0;
}

int verb_doctor(int argc, char **argv)
{
        struct doctor d = { 0 };
        const char *config = NULL, *tenant = NULL;
        struct utsname host;
        char text[256];
        int r;

        if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
                fputs(help, stdout);
                return 0;
        }
        r = parse(argc, argv, &d, &config, &tenant);
        if (r)
                return r;
        d.rows = json_array();
        uname(&host);
        snprintf(text, sizeof(text), "%s %s, %s", host.sysname, host.release, host.machine);
        row(&d, NOTE, "kernel", text);
        probe_host(&d, config);
        probe_runtimes(&d, config);
        if (probe_session(&d, config, tenant) == 0) {
                probe_sink(&d);
                probe_runs(&d);
                probe_registries(&d);
                probe_uv(&d);
                probe_store(&d);
                probe_capabilities(&d);
                seal(&d);
        }
        session_close(&d.session);
        r = d.is_json ? print_json(d.rows, "the findings") : 0;
        json_decref(d.rows);
        return r ? r : d.n_missing ? 1 : 0;
}
