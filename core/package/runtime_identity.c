#include "package/runtime_identity.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static const char *path_of(const struct rv_config_runtime *runtime, enum rv_language language)
{
        return language == RV_LANGUAGE_PYTHON ? runtime->python : runtime->javascript;
}

/* Where the interpreter is, without links; as it is written where that cannot be seen from here, as in an image. */
static void find_interpreter(const struct rv_config_runtime *runtime, enum rv_language language, char ret[PATH_MAX])
{
        char path[PATH_MAX];
        _cleanup_(rv_freep) char *real = NULL;

        snprintf(path, sizeof(path), "%s%s", strcmp(runtime->root, "host") == 0 ? "" : runtime->root, path_of(runtime, language));
        real = realpath(path, NULL);
        snprintf(ret, PATH_MAX, "%s", real ? real : path);
}

void rv_runtime_identity(const struct rv_config_runtime *runtime, enum rv_language language, const char *digest,
        char ret[RV_SHA256_HEX_SIZE])
{
        char interpreter[PATH_MAX] = "", text[2 * PATH_MAX];
        struct utsname host = { 0 };

        (void)uname(&host);
        if (runtime)
                find_interpreter(runtime, language, interpreter);
        snprintf(text, sizeof(text), "%s\n%s\n%s\n%s\n%s\n%s", host.machine, runtime ? runtime->name : "", runtime ? runtime->root : "",
                 runtime ? path_of(runtime, language) : "", interpreter, digest ? digest : "");
        rv_sha256_hex(text, strlen(text), ret);
}

void rv_runtime_release(const struct rv_config_runtime *runtime, char ret[RV_RUNTIME_RELEASE_SIZE])
{
        char interpreter[PATH_MAX];
        const char *name;
        int n = 0;

        ret[0] = 0;
        if (!runtime)
                return;
        find_interpreter(runtime, RV_LANGUAGE_PYTHON, interpreter);
        name = strrchr(interpreter, '/');
        if (name && sscanf(name, "/python3.%*2[0-9]%n", &n) == 0 && n > 0 && !name[n])
                snprintf(ret, RV_RUNTIME_RELEASE_SIZE, "%s", name + strlen("/python"));
}
