#include "audit_options.h"
#include "reeve.h"
#include "runtime.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
        "usage: reeve runtime verify [--json] [--config FILE] [NAME…]\n"
        "\n"
        "Reads all of the configured runtimes, or of those named, and compares the digest of each\n"
        "with runtimes.NAME.digest, or with the description that `reeve runtime build` left\n"
        "beside it. The host's own files have none.\n"
        "\n"
        "Exit status 0: each has its digest; 1: one has another, cannot be read, or has none to\n"
        "compare with; 2: usage.\n";

struct finding {
        const char *state;               /* ok, differs, unknown, unreadable */
        char digest[RV_TREE_DIGEST_SIZE], expected[RV_TREE_DIGEST_SIZE];
        char text[RV_ERROR_MESSAGE_MAX + 32];
};

static int compute(const struct rv_config_runtime *rt, char ret[RV_TREE_DIGEST_SIZE], struct rv_error *err)
{
        const char *path = rt->image ? rt->image : rt->root;
        _cleanup_(rv_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (rt->image ? 0 : O_DIRECTORY));
        int r;

        if (fd < 0) {
                r = -errno;
                return rv_error_set(err, r, "%s: %s", path, strerror(-r));
        }
        r = rt->image ? rv_file_digest(fd, ret) : rv_tree_digest(fd, ret, NULL, err);
        if (r < 0 && rt->image)
                return rv_error_set(err, r, "%s: %s", path, strerror(-r));
        return r;
}

/* The configuration's digest outranks the description, which lies beside what it describes. */
static void find_expected(const struct rv_config_runtime *rt, struct finding *f)
{
        _cleanup_(rv_json_unrefp) json_t *description = NULL;
        struct rv_error err = { 0 };

        if (rt->digest)
                snprintf(f->expected, sizeof(f->expected), "%s", rt->digest);
        else if (runtime_describe(rt->image ? rt->image : rt->root, &description, &err) == 0)
                snprintf(f->expected, sizeof(f->expected), "%s", rv_json_get_string(description, "digest", ""));
}

static void verify(const struct rv_config_runtime *rt, struct finding *f)
{
        struct rv_error err = { 0 };

        *f = (struct finding){ .state = "unreadable" };
        find_expected(rt, f);
        if (compute(rt, f->digest, &err) < 0) {
                snprintf(f->text, sizeof(f->text), "cannot be read: %s", err.message);
                f->digest[0] = 0;
        } else if (!*f->expected) {
                f->state = "unknown";
                snprintf(f->text, sizeof(f->text), "has nothing to compare with; set runtimes.%s.digest: %s if this is what it should be", rt->name, f->digest);
        } else if (strcmp(f->digest, f->expected) != 0) {
                f->state = "differs";
                snprintf(f->text, sizeof(f->text), "was changed: it has the digest %s, and should have %s; build it again", f->digest, f->expected);
        } else {
                f->state = "ok";
                snprintf(f->text, sizeof(f->text), "%s", f->digest);
        }
}

static json_t *text_or_null(const char *text)
{
        return *text ? json_string(text) : json_null();
}

static bool is_asked_for(const struct audit_options *o, const struct rv_config_runtime *rt)
{
        for (int i = 0; i < o->n_words; i++)
                if (!strcmp(o->words[i], rt->name))
                        return true;
        return o->n_words == 0 && strcmp(rt->root, "host") != 0;
}

static int verify_all(const struct audit_options *o, const struct rv_config *config)
{
        _cleanup_(rv_json_unrefp) json_t *all = json_array();
        struct finding f;
        int status = 0;

        for (size_t i = 0; i < config->n_runtimes; i++) {
                const struct rv_config_runtime *rt = &config->runtimes[i];

                if (!is_asked_for(o, rt))
                        continue;
                verify(rt, &f);
                if (strcmp(f.state, "ok") != 0)
                        status = 1;
                if (!o->is_json)
                        print_text("%-10s %s: %s", f.state, rt->name, f.text);
                json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:o, s:o, s:s}", "name", rt->name, "path", rt->image ? rt->image : rt->root, "state", f.state,
                                                     "digest", text_or_null(f.digest), "expected", text_or_null(f.expected), "text", f.text));
        }
        if (o->is_json && print_json(all, "the findings"))
                return EXIT_REEVE;
        if (!o->is_json && !json_array_size(all))
                print_text("no runtime but the host's own is configured");
        return status;
}

int runtime_verify(int argc, char **argv)
{
        static const struct option table[] = { AUDIT_OPTION_CONFIG, AUDIT_OPTION_JSON, AUDIT_OPTIONS_END };
        struct audit_options o = { .command = "runtime verify", .help = help, .table = table, .n_words_max = 1000 };
        _cleanup_(rv_config_freep) struct rv_config *config = NULL;
        int status = audit_options_read(&o, argc, argv);
        struct rv_error err = { 0 };

        if (status >= 0)
                return status;
        if (rv_config_load(o.config, &config, &err) < 0)
                return fail(o.is_json, 503, "the configuration cannot be used", err.message);
        for (int i = 0; i < o.n_words; i++) {
                const struct rv_config_runtime *rt = rv_config_runtime(config, o.words[i]);

                if (!rt)
                        return usage_error("runtime verify", "there is no runtime %s in the configuration", o.words[i]);
                if (!strcmp(rt->root, "host"))
                        return usage_error("runtime verify", "the runtime %s is the host's own files, which have no digest", o.words[i]);
        }
        return verify_all(&o, config);
}
