/*
 * main.c - reeve-fetch: makes HTTP and HTTPS requests for reeve, without any privilege
 *
 *     reeve-fetch [--files] [--uid N]     requests on standard input, answers on standard output: base/fetch.h
 *
 * --files: descriptor 3 is the directory in which files are made.
 */
#include "confine.h"
#include "serve.h"

#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UID_NOBODY 65534u

extern char **environ;

/* Proxies, certificates, libcurl's and OpenSSL's own settings: none of it comes from the environment. */
static char *no_environment[] = { NULL };

static bool read_uid(const char *text, uid_t *ret)
{
        char *end;
        unsigned long v;

        errno = 0;
        v = strtoul(text, &end, 10);
        if (errno || end == text || *end || *text == '-' || v == 0 || v >= UINT32_MAX)
                return false;
        *ret = (uid_t)v;
        return true;
}

static bool read_options(int argc, char **argv, uid_t *uid, bool *has_files)
{
        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--files") == 0)
                        *has_files = true;
                else if (strcmp(argv[i], "--uid") != 0 || ++i == argc || !read_uid(argv[i], uid))
                        return false;
        }
        return true;
}

int main(int argc, char **argv)
{
        struct rv_error err = { 0 };
        uid_t uid = UID_NOBODY;
        bool has_files = false;
        int status;

        if (!read_options(argc, argv, &uid, &has_files)) {
                fprintf(stderr, "usage: reeve-fetch [--files] [--uid N]\n\nMakes HTTP requests for reeve: one a line on standard input, answers on standard output.\n");
                return 2;
        }
        environ = no_environment;
        signal(SIGPIPE, SIG_IGN);
        if (confine(uid, STDERR_FILENO + 1u + has_files, &err) < 0) {
                fprintf(stderr, "reeve-fetch: %s\n", err.message);
                return 1;
        }
        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
                fprintf(stderr, "reeve-fetch: libcurl cannot be used\n");
                return 1;
        }
        umask(0022);
        status = serve(has_files ? STDERR_FILENO + 1 : -EBADF);
        curl_global_cleanup();
        return status;
}
