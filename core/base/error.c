#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int rv_error_set(struct rv_error *err, int code, const char *fmt, ...)
{
        va_list ap;

        if (!err || err->code)
                return code;
        err->code = code;
        va_start(ap, fmt);
        vsnprintf(err->message, sizeof(err->message), fmt, ap);
        va_end(ap);
        return code;
}

int rv_error_prefix(struct rv_error *err, const char *fmt, ...)
{
        char old[RV_ERROR_MESSAGE_MAX];
        va_list ap;
        int n;

        if (!err || !err->code)
                return 0;
        memcpy(old, err->message, sizeof(old));
        va_start(ap, fmt);
        n = vsnprintf(err->message, sizeof(err->message), fmt, ap);
        va_end(ap);
        if (n >= 0 && (size_t)n < sizeof(err->message))
                snprintf(err->message + n, sizeof(err->message) - (size_t)n, ": %s", old);
        return err->code;
}

static bool wants_trace(void)
{
        static int wants = -1;

        if (wants < 0)
                wants = getenv("REEVE_DEBUG_ERRORS") != NULL;
        return wants;
}

int rv__trace(int r, const char *file, int line, bool is_origin)
{
        if (r < 0 && wants_trace())
                fprintf(stderr, "%s %d (%s) at %s:%d\n", is_origin ? "error" : "  by", r, strerror(-r), file, line);
        return r;
}

bool rv__check(bool ok, const char *expr, const char *file, int line)
{
        if (!ok)
                fprintf(stderr, "bug: (%s) does not hold at %s:%d\n", expr, file, line);
        return ok;
}

_Noreturn void rv__require_failed(const char *expr, const char *file, int line)
{
        fprintf(stderr, "bug: (%s) does not hold at %s:%d\n", expr, file, line);
        abort();
}
