/*
 * many.c - rv_fetch_many() for tests: what is asked as a JSON document on standard input, what came of it on standard
 * output
 *
 *     many HELPER DIR DEADLINE_MS STOP_MS    DIR "-": none; STOP_MS 0: never
 *
 *     [{"url", "method"?, "body"?, "max_bytes"?, "timeout_ms"?, "file"?, "resolve"?: [], "is_public_only"?, "tells_redirects"?}, …]
 *     {"r", "error", "took_ms", "answers": [{"code", "message", "status", "location", "body" (its beginning), "bytes", "file_bytes"}]}
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/fetch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define RESOLVE_MAX 8

static _Atomic bool stop;

static void *stop_later(void *arg)
{
        usleep(1000u * (unsigned)atoi(arg));
        atomic_store(&stop, true);
        return NULL;
}

static size_t number(const json_t *q, const char *name, size_t otherwise)
{
        const json_t *value = json_object_get(q, name);

        return json_is_integer(value) ? (size_t)json_integer_value(value) : otherwise;
}

static void fill(struct rv_fetch_item *item, const json_t *q, const char **resolve)
{
        const json_t *entry, *body = json_object_get(q, "body");
        size_t i;

        item->q = (struct rv_fetch_request){ .method = rv_json_get_string(q, "method", "GET"), .url = rv_json_get_string(q, "url", NULL),
                .max_bytes = number(q, "max_bytes", 0), .timeout_ms = number(q, "timeout_ms", 10000), .resolve = resolve,
                .is_public_only = json_is_true(json_object_get(q, "is_public_only")), .tells_redirects = json_is_true(json_object_get(q, "tells_redirects")) };
        item->q.body = body ? json_string_value(body) : NULL;
        item->q.body_bytes = body ? json_string_length(body) : 0;
        item->file = rv_json_get_string(q, "file", NULL);
        json_array_foreach(json_object_get(q, "resolve"), i, entry)
                if (i < RESOLVE_MAX)
                        resolve[item->q.n_resolve++] = json_string_value(entry);
}

static json_t *describe(const struct rv_fetch_item *item)
{
        const struct rv_fetch_answer *a = &item->answer;

        return json_pack("{s:s, s:s, s:i, s:s, s:s%, s:I, s:I}", "code", rv_fetch_code_name(a->code), "message", a->message, "status", a->status, "location", rv_json_get_string(a->headers, "location", ""),
                "body", a->body.data ? a->body.data : "", RV_MIN(a->body.size, (size_t)100), "bytes", (json_int_t)a->body.size,
                "file_bytes", (json_int_t)item->file_bytes);
}

int main(int argc, char **argv)
{
        json_t *asked = argc == 5 ? json_loadf(stdin, 0, NULL) : NULL, *answers = json_array(), *all;
        size_t n = json_array_size(asked);
        struct rv_fetch_item *items = calloc(n + 1, sizeof(*items));
        const char **resolve = calloc(n + 1, RESOLVE_MAX * sizeof(*resolve));
        struct rv_error err = { 0 };
        uint64_t began = rv_boot_us();
        int helper_fd, dir_fd, r;
        pthread_t thread;

        if (!json_is_array(asked) || !items || !resolve)
                return 2;
        helper_fd = open(argv[1], O_PATH | O_CLOEXEC);
        dir_fd = strcmp(argv[2], "-") ? open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
        for (size_t i = 0; i < n; i++)
                fill(&items[i], json_array_get(asked, i), resolve + i * RESOLVE_MAX);
        if (atoi(argv[4]) && pthread_create(&thread, NULL, stop_later, argv[4]) != 0)
                return 2;
        r = rv_fetch_many(helper_fd, items, n, dir_fd, &stop, began + 1000 * strtoull(argv[3], NULL, 10), &err);
        for (size_t i = 0; i < n; i++) {
                json_array_append_new(answers, describe(&items[i]));
                rv_fetch_answer_fini(&items[i].answer);
        }
        all = json_pack("{s:i, s:s, s:I, s:o}", "r", r, "error", err.message, "took_ms", (json_int_t)((rv_boot_us() - began) / 1000), "answers", answers);
        json_dumpf(all, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
        json_decref(all);
        json_decref(asked);
        free(items);
        free(resolve);
        rv_close(helper_fd);
        rv_close(dir_fd);
        return 0;
}
