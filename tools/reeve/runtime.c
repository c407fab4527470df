#include "runtime.h"

#include "reeve.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
        "usage: reeve runtime list [--json] [--config FILE]\n"
        "       reeve runtime build NAME [OPTION…]\n"
        "       reeve runtime verify [--json] [--config FILE] [NAME…]\n"
        "\n"
        "A runtime is an interpreter set with the files that runs see: the host's own, a\n"
        "directory, or an image of a file system.\n"
        "\n"
        "list    the configured runtimes: format, digest, interpreters, and whether they can be used\n"
        "build   make a minimal one from Debian packages\n"
        "verify  read all of it and compare its digest\n"
        "\n"
        "`reeve runtime COMMAND --help` tells more.\n";

int verb_runtime(int argc, char **argv)
{
        static const struct {
                const char *name;
                int (*run)(int argc, char **argv);
        } commands[] = { { "list", runtime_list }, { "build", runtime_build }, { "verify", runtime_verify } };

        if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
                fputs(help, stdout);
                return 0;
        }
        for (size_t i = 0; argc > 1 && i < RV_N_ELEMENTS(commands); i++)
                if (!strcmp(argv[1], commands[i].name))
                        return commands[i].run(argc - 1, argv + 1);
        if (argc > 1)
                return usage_error("runtime", "there is no command %s", argv[1]);
        return usage_error("runtime", "say list, build or verify");
}

void runtime_description_path(const char *path, char *ret, size_t size)
{
        static const char *const suffixes[] = { ".erofs", ".squashfs" };
        size_t n = strlen(path);

        while (n > 1 && path[n - 1] == '/')
                n--;
        for (size_t i = 0; i < RV_N_ELEMENTS(suffixes); i++) {
                size_t n_suffix = strlen(suffixes[i]);

                if (n > n_suffix && !strncmp(path + n - n_suffix, suffixes[i], n_suffix)) {
                        n -= n_suffix;
                        break;
                }
        }
        snprintf(ret, size, "%.*s" RUNTIME_DESCRIPTION, (int)n, path);
}

int runtime_describe(const char *path, json_t **ret, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        _cleanup_(rv_json_unrefp) json_t *value = NULL;
        struct rv_error why = { 0 };
        char file[4096 + 32];
        int r;

        runtime_description_path(path, file, sizeof(file));
        r = rv_read_file_at(AT_FDCWD, file, RUNTIME_DESCRIPTION_BYTES_MAX, &text);
        if (r < 0)
                return rv_error_set(err, r, "%s: %s", file, strerror(-r));
        r = rv_json_read(text.data, text.size, 8, &value, &why);
        if (r == 0 && (!json_is_object(value) || strcmp(rv_json_get_string(value, "schema", ""), "reeve.runtime/1") != 0))
                r = rv_error_set(&why, -EINVAL, "it is no description of a runtime");
        if (r < 0)
                return rv_error_set(err, r, "%s: %s", file, why.message);
        *ret = rv_take(&value);
        return 0;
}
