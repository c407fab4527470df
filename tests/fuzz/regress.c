/*
 * Replays kept inputs through a fuzz target: every file of the directories named, each in memory of its exact size,
 * so that a build with sanitizers finds what reads past the end. Needs no libFuzzer and any compiler will do. A
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

static void on_abort(int signal_number)
{
        static const char text[] = "while replaying ";

        (void)signal_number;
        (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
        (void)!write(STDERR_FILENO, path, strlen(path));
        (void)!write(STDERR_FILENO, "\n", 1);
}

static int replay(const char *dir, const char *name)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        uint8_t *exact;
        int r;

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        r = rv_read_file_at(AT_FDCWD, path, INPUT_BYTES_MAX, &b);
        exact = r < 0 ? NULL : malloc(b.size ? b.size : 1);
        if (!exact) {
                fprintf(stderr, "%s: %s\n", path, strerror(r < 0 ? -r : ENOMEM));
                return 1;
        }
        if (b.size)
                memcpy(exact, b.data, b.size);
        r = LLVMFuzzerTestOneInput(exact, b.size);
        free(exact);
        return r != 0;
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
        if (n > 0)
                printf("%s: %d inputs replayed\n", dir, n);
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
        return r;
}
