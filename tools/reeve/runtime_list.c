#include "audit_options.h"
#include "reeve.h"
#include "runtime.h"
#include "start.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const char help[] =
        "usage: reeve runtime list [--json] [--config FILE]\n"
        "\n"
        "The configured runtimes: format, digest, the interpreters with their versions, and\n"
        "whether they can be used here. The digest of an image is its own; that of a directory is\n"
        "the configuration's, which `reeve runtime verify` compares.\n"
        "\n"
        "Exit status 0: all can be used; 1: one cannot; 2: usage.\n";

static json_t *text_or_null(const char *text)
{
        return *text ? json_string(text) : json_null();
}

/* "name TAB format TAB state TAB path TAB digest TAB python TAB javascript TAB text" */
static json_t *read_line(char *line)
{
        char *parts[8], *at = line;
        size_t n = 0;

        line[strcspn(line, "\n")] = 0;
        while (at && n < RV_N_ELEMENTS(parts))
                parts[n++] = strsep(&at, "\t");
        if (n != RV_N_ELEMENTS(parts))
                return NULL;
        return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:s}", "name", parts[0], "format", parts[1], "state", parts[2], "path", parts[3],
                         "digest", text_or_null(parts[4]), "python", text_or_null(parts[5]), "javascript", text_or_null(parts[6]), "text", parts[7]);
}

int runtime_ask(const char *config_path, json_t **ret, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *all = json_array();
        _cleanup_(rv_config_freep) struct rv_config *config = NULL;
        _cleanup_(rv_freep) char *file = NULL;
        char line[8192];
        pid_t pid = -1;
        FILE *f;
        int fd, r;

        /* Read here too, as it is this process that says what is wrong with it. */
        r = rv_config_find(config_path, &file, err);
        if (r == 0)
                r = rv_config_load(config_path, &config, err);
        if (r == 0)
                r = spawner_ask(file, SPAWNER_RUNTIMES, &fd, &pid, err);
        if (r < 0)
                return rv_trace(r);
        f = fdopen(fd, "r");
        while (f && fgets(line, sizeof(line), f)) {
                json_t *one = read_line(line);

                if (one)
                        json_array_append_new(all, one);
        }
        if (f)
                fclose(f);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        if (json_array_size(all) != config->n_runtimes)
                return rv_error_set(err, -EPIPE, "the process that looks at the runtimes ended before it was done");
        *ret = rv_take(&all);
        return 0;
}

static const char *or_dash(const json_t *one, const char *member)
{
        return rv_json_get_string(one, member, "-");
}

int runtime_list(int argc, char **argv)
{
        static const struct option table[] = { AUDIT_OPTION_CONFIG, AUDIT_OPTION_JSON, AUDIT_OPTIONS_END };
        struct audit_options o = { .command = "runtime list", .help = help, .table = table };
        int status = audit_options_read(&o, argc, argv);
        _cleanup_(rv_json_unrefp) json_t *all = NULL;
        struct rv_error err = { 0 };
        const json_t *one;
        size_t i;

        if (status >= 0)
                return status;
        if (runtime_ask(o.config, &all, &err) < 0)
                return fail(o.is_json, 503, "the runtimes cannot be listed", err.message);
        status = 0;
        json_array_foreach (all, i, one) {
                bool is_usable = !strcmp(or_dash(one, "state"), "usable");

                if (!is_usable)
                        status = 1;
                if (o.is_json)
                        continue;
                print_text("%-8s %-16s %-9s python %s, javascript %s%s%s", or_dash(one, "state"), or_dash(one, "name"), or_dash(one, "format"), or_dash(one, "python"),
                           or_dash(one, "javascript"), is_usable ? "" : ": ", is_usable ? "" : or_dash(one, "text"));
                if (json_is_string(json_object_get(one, "digest")))
                        print_text("%-8s %-16s %s", "", "", or_dash(one, "digest"));
        }
        return o.is_json && print_json(all, "the runtimes") ? EXIT_REEVE : status;
}
