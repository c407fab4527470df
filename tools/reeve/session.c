#include "session.h"

#include "reeve.h"

#include "audit/live.h"
#include "audit/redact.h"
#include "base/fd.h"
#include "base/hash.h"
#include "builtin.h"
#include "start.h"
#include "policy/bundle.h"
#include "run/recover.h"
#include "store/packages.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PASSWD_BYTES_MAX (4u << 20)
#define ASK_MS 3000

/* ---- With privilege ---- */

/* From /etc/passwd alone: asking every name service costs more than a decision. */
static uid_t find_loop_uid(const struct rv_config *config)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        unsigned uid;

        if (geteuid() != 0)
                return geteuid();
        if (rv_read_file_at(AT_FDCWD, "/etc/passwd", PASSWD_BYTES_MAX, &text) == 0)
                for (const char *line = text.data; line && *line;
                        line = strchr(line, '\n'), line = line ? line + 1 : NULL)
                        if (sscanf(line, "reeve:%*[^:]:%u:", &uid) == 1 && uid != 0)
                                return uid;
        return config->uid_first;
}

static bool is_empty(int dir_fd)
{
        int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *e;
        bool is = d;

        if (!d)
                rv_close(fd);
        while (is && (e = readdir(d)))
                is = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strcmp(e->d_name, "lost+found");
        if (d)
                closedir(d);
        return is;
}

static int open_state(struct session *s, struct rv_error *err)
{
        const char *path = s->config->state_dir;
        struct stat st;
        int r;

        s->state_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s->state_fd < 0 && errno == ENOENT) {
                r = rv_mkdir_p(path, 0700);
                if (r < 0)
                        return rv_error_set(err, r, "cannot make the state directory %s: %s; set `state_dir`", path, strerror(-r));
                s->state_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
        if (s->state_fd < 0 || fstat(s->state_fd, &st) < 0) {
                r = -errno;
                return rv_error_set(err, r, "cannot open the state directory %s: %s; set `state_dir`", path, strerror(-r));
        }
        if (geteuid() != 0 || st.st_uid != 0 || s->uid == 0)
                return 0;
        /* STATE belongs to the loop's user: a new directory of root's is handed over, nothing else of root's is. */
        if (!is_empty(s->state_fd))
                return rv_error_set(err, -ENOTEMPTY, "the state directory %s is root's and not empty; set `state_dir` to a directory of reeve's own, or give this one and all in it to uid %u",
                                    path, (unsigned)s->uid);
        if (fchown(s->state_fd, s->uid, s->uid) < 0 || fchmod(s->state_fd, 0700) < 0) {
                r = -errno;
                return rv_error_set(err, r, "cannot give the state directory %s to uid %u: %s", path, (unsigned)s->uid, strerror(-r));
        }
        return 0;
}

/* A bundle that cannot be loaded is no failure of the session: every run is denied, with this reason. */
static void reject_bundle(struct session *s, int r)
{
        rv_error_set(&s->bundle_error, r, "cannot load the policy bundle: %s", strerror(-r));
        rv_bundle_free(s->bundle);
        s->bundle = NULL;
}

/* Without a shadow everything goes on; the records say so. */
static void reject_shadow(struct session *s, const char *why)
{
        rv_error_set(&s->shadow_error, -EINVAL, "no shadow: %s", why);
        rv_bundle_free(s->shadow);
        s->shadow = NULL;
}

static void load_bundle(struct session *s)
{
        int r;

        if (s->tenant->policy)
                r = rv_bundle_load(s->tenant->policy, &s->bundle, &s->bundle_error);
        else
                r = rv_bundle_builtin(&s->bundle);
        if (r < 0)
                reject_bundle(s, r);
        if (!s->tenant->shadow)
                return;
        r = rv_bundle_load(s->tenant->shadow, &s->shadow, &s->shadow_error);
        if (r < 0)
                reject_shadow(s, strerror(-r));
}

/* The spawner first of all, so that it comes up while the rest is done. */
static int begin(struct session *s, const char *config_path, enum spawner_duty duty, const char *key_file,
        struct rv_error *err)
{
        _cleanup_(rv_freep) char *file = NULL;
        int r;

        *s = (struct session){ .state_fd = -EBADF, .fetch_fd = -EBADF, .unpack_fd = -EBADF, .spawner_fd = -EBADF, .spawner_pid = -1 };
        r = rv_config_find(config_path, &file, err);
        if (r == 0)
                r = spawner_fork(file, duty, key_file, &s->spawner_fd, &s->spawner_pid, err);
        if (r == 0)
                r = *file ? rv_config_load(file, &s->config, err) : rv_config_parse("", 0, "", &s->config, err);
        if (r < 0)
                return rv_trace(r);
        s->is_root = geteuid() == 0;
        s->uid = find_loop_uid(s->config);
        return 0;
}

int session_prepare(struct session *s, const char *config_path, const char *tenant, struct rv_error *err)
{
        int r;

        r = begin(s, config_path, SPAWNER_RUN, NULL, err);
        if (r < 0)
                return r;
        s->tenant = rv_config_tenant(s->config, tenant ? tenant : "local");
        if (!s->tenant)
                return rv_error_set(err, -ENOENT, "no tenant %s in the configuration %s; add tenants.%s or choose another by --tenant",
                                    tenant ? tenant : "local", *s->config->file ? s->config->file : "(built in)", tenant ? tenant : "local");
        r = open_state(s, err);
        if (r == 0)
                r = session_sink_open(s, err);
        if (r < 0)
                return r;
        load_bundle(s);
        session_identify_runtime(s);
        return 0;
}

/* ---- Without ---- */

static int drop_privilege(const struct session *s, struct rv_error *err)
{
        int r;

        if (geteuid() == 0 && s->uid != 0 &&
                (setgroups(0, NULL) < 0 || setresgid(s->uid, s->uid, s->uid) < 0 ||
                        setresuid(s->uid, s->uid, s->uid) < 0)) {
                r = -errno;
                return rv_error_set(err, r, "cannot become uid %u: %s", (unsigned)s->uid, strerror(-r));
        }
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
                r = -errno;
                return rv_error_set(err, r, "cannot set no_new_privs: %s", strerror(-r));
        }
        return 0;
}

/* So that any record can be evaluated again. By then the state directory may be out of reach by its path. */
static int keep_bundles(struct session *s, struct rv_error *err)
{
        char dir[64];
        int r = 0;

        snprintf(dir, sizeof(dir), "/proc/self/fd/%d/bundles", s->state_fd);
        if (s->bundle)
                r = rv_bundle_keep(s->bundle, dir);
        if (r == 0 && s->shadow && rv_bundle_keep(s->shadow, dir) < 0)
                reject_shadow(s, "cannot keep a copy of the shadow in the state directory");
        if (r < 0)
                return rv_error_set(err, r, "cannot keep a copy of the policy bundle in %s/bundles: %s; all of the state directory has to belong to uid %u",
                                    s->config->state_dir, strerror(-r), (unsigned)s->uid);
        return 0;
}

/* Which bundle judges from here on, or why none does. @role: NULL, or "shadow". */
static int note_bundle(struct session *s, const struct rv_bundle *bundle, const struct rv_error *why_none,
        const char *role, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s}", "tenant", s->tenant->name);
        int r;

        if (role)
                json_object_set_new(body, "role", json_string(role));
        if (!bundle) {
                json_object_set_new(body, "message", json_string(why_none->message));
                return rv_log_append(s->core.log, "bundle_rejected", body, NULL, err);
        }
        json_object_set_new(body, "name", json_string(rv_bundle_name(bundle)));
        json_object_set_new(body, "version", json_string(rv_bundle_version(bundle)));
        r = rv_log_note_bundle(s->core.log, rv_bundle_digest(bundle), body, err);
        return r < 0 ? r : 0;
}

static int note_config(struct session *s, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *config = json_pack("{s:s}", "file", s->config->file);
        char digest[RV_SHA256_HEX_SIZE];

        rv_sha256_hex(s->config->text, s->config->text_bytes, digest);
        return rv_log_note_config(s->core.log, digest, config, err);
}

static int note_context(struct session *s, struct rv_error *err)
{
        int r;

        r = note_config(s, err);
        if (r < 0)
                return r;
        r = note_bundle(s, s->bundle, &s->bundle_error, NULL, err);
        if (r == 0 && s->tenant->shadow)
                r = note_bundle(s, s->shadow, &s->shadow_error, "shadow", err);
        return r;
}

static int spawn_start(void *ctx, const struct rv_spawn_spec *spec, rv_spawn_cb cb, void *arg, uint64_t *ret_id)
{
        struct rv_loop *loop = ctx;

        return rv_spawn_client_start(loop->spawn_client, spec, cb, arg, ret_id);
}

static void spawn_stop(void *ctx, uint64_t id)
{
        struct rv_loop *loop = ctx;

        rv_spawn_client_stop(loop->spawn_client, id);
}

static void on_answer(void *arg, const void *answer)
{
        struct session *s = arg;
        const struct rv_sign_answer *a = answer;

        /* So that its end and the record's writing go on at the same time. */
        if (s->is_last && a && a->code == RV_SIGN_OK && a->n_signatures)
                rv_spawn_client_hang_up(s->loop.spawn_client);
        s->sign_cb(s->sign_arg, a);
}

/* For rv_seal. One question at a time: the client sees to that. */
static int sign(void *ctx, const struct rv_sign_request *q, rv_sign_cb cb, void *arg)
{
        struct session *s = ctx;
        int r;

        r = rv_spawn_client_ask(s->loop.spawn_client, q, sizeof(*q), sizeof(struct rv_sign_answer), on_answer, s);
        if (r < 0)
                return rv_trace(r);
        s->sign_cb = cb;
        s->sign_arg = arg;
        return 0;
}

/* The loop, the channel to the spawner, and what seals the log. */
static int make_channel(struct session *s)
{
        struct rv_spawn_client *client;
        int r;

        r = rv_loop_init(&s->loop);
        if (r < 0)
                return rv_trace(r);
        s->has_loop = true;
        r = rv_spawn_client_new(&s->loop.host, s->spawner_fd, s->spawner_pid, &client);
        if (r < 0)
                return rv_trace(r);
        s->spawner_fd = -EBADF;
        s->spawner_pid = -1;
        s->loop.spawn_client = client;
        return rv_trace(rv_seal_new(s->core.log, &s->loop.host, sign, s, &s->seal));
}

/* It ends with the channel. */
static void on_gate(void *arg, int take_fd, const char *text)
{
        struct session *s = arg;

        if (take_fd >= 0)
                rv_gate_client_serve(s->core.gate, take_fd);
        else
                rv_gate_client_lose(s->core.gate, text);
}

static int make_loop(struct session *s)
{
        int r;

        r = make_channel(s);
        if (r < 0)
                return rv_trace(r);
        s->loop.host.spawn_start = spawn_start;
        s->loop.host.spawn_stop = spawn_stop;
        s->loop.host.has_private_uids = s->is_root;
        rv_core_fill_host(&s->loop.host);
        s->core.config = s->config;
        s->core.host = &s->loop.host;
        memcpy(s->core.registries, s->registries, sizeof(s->registries));
        s->core.complete_registry = session_complete_registry;
        s->core.registry_arg = s;
        r = rv_gate_client_new(&s->loop.host, &s->core.gate);
        if (r < 0)
                return rv_trace(r);
        rv_spawn_client_on_gate(s->loop.spawn_client, on_gate, s);
        return rv_core_add_backend(&s->core, &rv_namespace_backend);
}

static int configure_log(struct session *s, struct rv_error *err)
{
        int r;

        rv_log_set_segment_max(s->core.log, s->config->audit.segment_max_bytes);
        r = rv_log_set_redaction(s->core.log, s->config->audit.redact.items, s->config->audit.redact.n_items);
        return r < 0 ? rv_error_set(err, r, "cannot redact records: %s", strerror(-r)) : 0;
}

int session_settle(struct session *s, bool *ret_is_log, struct rv_error *err)
{
        int r;

        *ret_is_log = false;
        r = drop_privilege(s, err);
        if (r < 0)
                return r;
        *ret_is_log = true;
        r = keep_bundles(s, err);
        if (r < 0)
                return r;
        r = rv_log_open_at(s->state_fd, s->config->state_dir, &s->core.log, err);
        if (r == 0)
                r = configure_log(s, err);
        if (r == 0)
                r = rv_log_enlist(s->core.log, err);
        if (r == 0)
                r = rv_run_recover(s->core.log, err);
        if (r >= 0)
                r = note_context(s, err);
        if (r < 0)
                return r;
        *ret_is_log = false;
        session_sink_gate(s);
        r = session_open_packages(s, err);
        if (r < 0)
                return r;
        r = make_loop(s);
        return r < 0 ? rv_error_set(err, r, "cannot make the event loop: %s", strerror(-r)) : 0;
}

/* ---- To sign, and nothing else ---- */

int session_prepare_signing(struct session *s, const char *config_path, const char *key_file, struct rv_error *err)
{
        int r = begin(s, config_path, SPAWNER_SIGN, key_file, err);

        return r < 0 ? r : open_state(s, err);
}

int session_settle_signing(struct session *s, struct rv_error *err)
{
        int r;

        r = drop_privilege(s, err);
        if (r == 0)
                r = rv_log_open_at(s->state_fd, s->config->state_dir, &s->core.log, err);
        if (r == 0)
                r = note_config(s, err);
        if (r < 0)
                return r;
        r = make_channel(s);
        return r < 0 ? rv_error_set(err, r, "cannot make the event loop: %s", strerror(-r)) : 0;
}

struct waiting {
        struct session *session;
        struct rv_sign_answer *answer;
        struct rv_error *err;
        int r;
        bool is_over;
};

static void on_asked(void *arg, const struct rv_sign_answer *answer)
{
        struct waiting *w = arg;

        w->r = answer ? 0 : -EPIPE;
        if (answer)
                *w->answer = *answer;
        w->is_over = true;
        rv_loop_stop(&w->session->loop);
}

static void ignore_answer(void *arg, const struct rv_sign_answer *answer)
{
        (void)arg;
        (void)answer;
}

static void on_patience(void *arg)
{
        struct waiting *w = arg;

        w->r = -ETIMEDOUT;
        w->is_over = true;
        rv_loop_stop(&w->session->loop);
}

int session_ask(struct session *s, const struct rv_sign_request *q, struct rv_sign_answer *ret)
{
        struct waiting w = { .session = s, .answer = ret };
        struct rv_host *host = &s->loop.host;
        struct rv_host_timer *timer;
        int r;

        r = sign(s, q, on_asked, &w);
        if (r == 0)
                r = host->timer_start(host->ctx, ASK_MS, on_patience, &w, &timer);
        if (r < 0)
                return rv_trace(r);
        while (!w.is_over)
                rv_loop_run(&s->loop);
        host->timer_stop(host->ctx, timer);
        if (w.r == -ETIMEDOUT)
                s->sign_cb = ignore_answer;
        return w.r;
}

static void on_sealed(void *arg, int r, const struct rv_error *err)
{
        struct waiting *w = arg;

        w->r = r;
        if (r < 0)
                rv_error_set(w->err, r, "%s", err->message);
        w->is_over = true;
        rv_loop_stop(&w->session->loop);
}

int session_seal(struct session *s, enum rv_seal_mode mode, struct rv_error *err)
{
        struct waiting w = { .session = s, .err = err };

        rv_seal_start(s->seal, mode, on_sealed, &w);
        while (!w.is_over)
                rv_loop_run(&s->loop);
        return w.r;
}

void session_close(struct session *s)
{
        rv_core_fini(&s->core);
        if (s->has_loop) {
                rv_gate_client_free(s->core.gate);
                s->core.gate = NULL;
                rv_spawn_client_close(s->loop.spawn_client);
                rv_seal_free(s->seal);
                rv_loop_fini(&s->loop);
        }
        rv_close(s->spawner_fd);      /* not served yet: it ends by itself */
        session_sink_send(s);
        rv_sink_close(s->sink);
        rv_log_close(s->core.log);
        rv_store_close(s->core.store);
        rv_close(s->state_fd);
        rv_bundle_free(s->bundle);
        rv_bundle_free(s->shadow);
        for (size_t i = 0; i < RV_N_ELEMENTS(s->registries); i++)
                rv_registry_free(s->registries[i]);
        rv_close(s->fetch_fd);
        rv_close(s->unpack_fd);
        rv_config_free(s->config);
}
