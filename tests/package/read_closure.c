/*
 * read_closure LANGUAGE PACKAGE… <CLOSURE - how reeve reads what a driver printed
 *
 * Prints one JSON document: {"r", "value" or "error", "paths"}.
 */
#include "package/closure.h"
#include "package/closure_paths.h"
#include "request/npmrange.h"
#include "request/pyreq.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ASKED_MAX 50

int main(int argc, char **argv)
{
        int language = argc > 1 ? rv_language_parse(argv[1]) : -EINVAL;
        struct rv_package asked[ASKED_MAX] = { 0 };
        struct rv_buf text = { 0 };
        struct rv_error err = { 0 };
        json_t *value = NULL, *paths = NULL, *out;
        size_t n_asked = 0;
        ssize_t n;
        int r;

        if (language < 0 || argc - 2 > ASKED_MAX)
                return 2;
        for (int i = 2; i < argc; i++)
                if ((language == RV_LANGUAGE_PYTHON ? rv_pyreq_parse : rv_npmreq_parse)(
                            argv[i], strlen(argv[i]), &asked[n_asked++], NULL))
                        return 2;
        do {
                if (rv_buf_reserve(&text, 65536) < 0)
                        return 2;
                n = read(0, text.data + text.size, 65536);
                text.size += n > 0 ? (size_t)n : 0;
        } while (n > 0);
        r = rv_closure_read((enum rv_language)language, text.data, text.size, asked, n_asked, &value, &err);
        if (r == 0 && rv_closure_paths(json_object_get(value, "packages"), &paths) < 0)
                return 2;
        out = json_pack("{s:i, s:s, s:o*, s:o*}", "r", r, "error", err.message, "value", value, "paths", paths);
        json_dumpf(out, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
        json_decref(out);
        rv_buf_fini(&text);
        for (size_t i = 0; i < n_asked; i++)
                rv_package_fini(&asked[i]);
        return 0;
}
