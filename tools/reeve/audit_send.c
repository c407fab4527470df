#include "audit.h"

#include "audit/sink.h"
#include "base/config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BUSY_TRIES 200u
#define LOOK_AGAIN_US 50000u     /* together 10 s for another process that is delivering */

static const char help[] =
        "usage: reeve audit send [--json] [--config FILE]\n"
        "\n"
        "Delivers what audit.sink has not acknowledged so far, until nothing is left; each batch may take\n"
        "audit.sink.timeout. For a timer, and for when runs are refused because too much is waiting.\n"
        "Exit status 0: all is delivered; 1: it is not, and why is said; 2: usage, or there is no sink.\n";

struct send_verb {
        bool is_json;
        const char *config_path;
        struct rv_config *config;
        struct rv_sink *sink;
        struct audit_place place;
        struct rv_log *log;
        struct rv_sink_progress progress;
        uint64_t lag;
};

static int parse(int argc, char **argv, struct send_verb *v)
{
        for (int i = 1; i < argc; i++) {
                if (!strcmp(argv[i], "--json"))
                        v->is_json = true;
                else if (!strcmp(argv[i], "--config") && i + 1 < argc)
                        v->config_path = argv[++i];
                else
                        return usage_error("audit send", "unknown argument %s", argv[i]);
        }
        return 0;
}

/* With privilege what the configuration names, then, as the owner of the log, the log. */
static int open_all(struct send_verb *v, struct rv_error *err)
{
        int r;

        r = rv_config_load(v->config_path, &v->config, err);
        if (r < 0)
                return rv_trace(r);
        if (!v->config->audit.sink.to)
                return rv_error_set(err, rv_raise(-ENODEV), "the configuration %s has no audit.sink, so there is nowhere to deliver to",
                                    *v->config->file ? v->config->file : "(built in)");
        r = rv_sink_open(&v->config->audit.sink, &v->sink, err);
        if (r == 0)
                r = audit_place_open(NULL, v->config->state_dir, &v->place, err);
        if (r < 0)
                return rv_trace(r);
        if (!v->place.state_dir)
                return rv_error_set(err, rv_raise(-ENOENT), "%s has no log so far", v->config->state_dir);
        return rv_trace(rv_log_open_at(v->place.state_fd, v->config->state_dir, &v->log, err));
}

static int deliver(struct send_verb *v, struct rv_error *err)
{
        unsigned n_busy = 0;
        int r;

        for (;;) {
                r = rv_sink_lag(v->log, &v->lag, err);
                if (r < 0 || v->lag == 0)
                        return rv_trace(r);
                r = rv_sink_send(v->sink, v->log, UINT64_MAX, &v->progress, err);
                if (r < 0)
                        return rv_trace(r);
                if (r == RV_SINK_E_BUSY && ++n_busy == BUSY_TRIES)
                        return rv_error_set(err, rv_raise(-EBUSY), "another process is delivering, and has not come to the end of it");
                if (r == RV_SINK_E_BUSY)
                        usleep(LOOK_AGAIN_US);
        }
}

static int report(struct send_verb *v, const struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *json = NULL;
        struct rv_error ignored = { 0 };

        if (err->code)
                (void)rv_sink_lag(v->log, &v->lag, &ignored);
        if (v->is_json) {
                json = json_pack("{s:s, s:I, s:I, s:I, s:o}", "to", rv_sink_name(v->sink), "records", (json_int_t)v->progress.n_records, "bytes",
                                 (json_int_t)v->progress.n_bytes, "lag_bytes", (json_int_t)v->lag, "error", err->code ? json_string(err->message) : json_null());
                if (print_json(json, "the report"))
                        return EXIT_REEVE;
        } else if (!err->code)
                print_text("%s: %llu records, %llu bytes", rv_sink_name(v->sink), (unsigned long long)v->progress.n_records,
                           (unsigned long long)v->progress.n_bytes);
        if (err->code)
                say("audit send: %s; %llu bytes of the log are not delivered", err->message, (unsigned long long)v->lag);
        return err->code ? 1 : 0;
}

int audit_send(int argc, char **argv)
{
        struct send_verb v = { .place = { .audit_fd = -EBADF, .state_fd = -EBADF } };
        struct rv_error err = { 0 };
        int r;

        if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
                fputs(help, stdout);
                return 0;
        }
        r = parse(argc, argv, &v);
        if (r)
                return r;
        signal(SIGPIPE, SIG_IGN);       /* a pipe that is read no more is told by the write */
        signal(SIGCHLD, SIG_DFL);       /* a caller may have it ignored, and then no child could be waited for */
        if (open_all(&v, &err) < 0) {
                say("audit send: %s", err.message);
                r = EXIT_USAGE;
        } else {
                (void)deliver(&v, &err);
                r = report(&v, &err);
        }
        rv_log_close(v.log);
        audit_place_close(&v.place);
        rv_sink_close(v.sink);
        rv_config_free(v.config);
        return r;
}
