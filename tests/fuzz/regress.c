/*
 * Replays kept inputs through a fuzz target: every file of the directories named, of one whose name ends in .lines
 * every line, each input in memory of its exact size, so that a build with sanitizers finds what reads past the end. Needs no libFuzzer and any compiler will do. A
 * directory that is missing or empty is a failure: a test that tests nothing must not pass.
 */
#include "fuzz.h"

#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define INPUT_BYTES_MAX ((size_t)8 << 20)

static char path[4096];
static size_t line;          /* in it; 0: all of it is one input */
static size_t n_replayed;

static void on_abort(int signal_number)
{
        char text[sizeof(path) + 64];
        int n = snprintf(text, sizeof(text), line ? "while replaying %s:%zu\n" : "while replaying %s\n", path, line);

        (void)signal_number;
        (void)!write(STDERR_FILENO, text, (size_t)n);
}

static int replay_one(const char *data, size_t n)
{
        uint8_t *exact = malloc(n ? n : 1);
        int r;

        if (!exact)
                return 1;
        if (n)
                memcpy(exact, data, n);
        r = LLVMFuzzerTestOneInput(exact, n);
        free(exact);
        n_replayed++;
        return r != 0;
}

static int replay_lines(const char *data, size_t n)
{
        const char *end = data + n;
        int r = 0;

        while (data < end) {
                const char *newline = memchr(data, '\n', (size_t)(end - data));

                line++;
                r |= replay_one(data, (size_t)((newline ? newline : end) - data));
                data = newline ? newline + 1 : end;
        }
        return r;
}

static int replay(const char *dir, const char *name)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        const char *suffix = strrchr(name, '.');
        int r;

        line = 0;
        snprintf(path, sizeof(path), "%s/%s", dir, name);
        r = rv_read_file_at(AT_FDCWD, path, INPUT_BYTES_MAX, &b);
        if (r < 0) {
                fprintf(stderr, "%s: %s\n", path, strerror(-r));
                return 1;
        }
        if (suffix && strcmp(suffix, ".lines") == 0)
                return replay_lines(b.data, b.size);
        return replay_one(b.data, b.size);
}

static int is_shown(const struct dirent *e)
{
        return e->d_name[0] != '.';
}

static int replay_all(const char *dir)
{
        struct dirent **entries = NULL;
        int n = scandir(dir, &entries, is_shown, alphasort), r = n <= 0;

        if (n <= 0)
                fprintf(stderr, "%s: %s\n", dir, n < 0 ? strerror(errno) : "no inputs");
        for (int i = 0; i < n; i++) {
                r |= replay(dir, entries[i]->d_name);
                free(entries[i]);
        }
        free(entries);
        return r;
}

int main(int argc, char **argv)
{
        int r = argc < 2;

        signal(SIGABRT, on_abort);
        if (argc < 2)
                fprintf(stderr, "usage: %s DIRECTORY…\n", argv[0]);
        for (int i = 1; i < argc; i++)
                r |= replay_all(argv[i]);
        printf("%zu inputs replayed\n", n_replayed);
        return r;
}
