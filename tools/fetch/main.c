/*
 * main.c - reeve-fetch: makes HTTP and HTTPS requests for reeve, without any privilege
 *
 *     reeve-fetch [--uid N]     requests on standard input, answers on standard output: base/fetch.h
 */
#include "confine.h"
#include "serve.h"

#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
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

int main(int argc, char **argv)
{
        struct rv_error err = { 0 };
        uid_t uid = UID_NOBODY;
        int status;

        if (argc != 1 && (argc != 3 || strcmp(argv[1], "--uid") != 0 || !read_uid(argv[2], &uid))) {
                fprintf(stderr, "usage: reeve-fetch [--uid N]\n\nMakes HTTP requests for reeve: one a line on standard input, answers on standard output.\n");
                return 2;
        }
        environ = no_environment;
        signal(SIGPIPE, SIG_IGN);
        if (confine(uid, &err) < 0) {
                fprintf(stderr, "reeve-fetch: %s\n", err.message);
                return 1;
        }
        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
                fprintf(stderr, "reeve-fetch: libcurl cannot be used\n");
                return 1;
        }
        status = serve();
        curl_global_cleanup();
        return status;
}
