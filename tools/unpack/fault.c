#include "fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fault_set(struct fault *f, const char *cause, const char *fmt, ...)
{
        va_list ap;

        f->cause = cause;
        va_start(ap, fmt);
        vsnprintf(f->text, sizeof(f->text), fmt, ap);
        va_end(ap);
        for (char *p = f->text; *p; p++)
                if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
                        *p = '?';
        return UNPACK_E_FAULT;
}

const char *fault_quote(const char *text, size_t n, char ret[FAULT_QUOTE_SIZE])
{
        static const size_t room = FAULT_QUOTE_SIZE - sizeof("\"...");   /* the closing quote is in there */
        size_t at = 0, i = 0;

        ret[at++] = '"';
        for (; i < n && at + 4 < room; i++) {
                unsigned char c = (unsigned char)text[i];

                if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
                        at += (size_t)snprintf(ret + at, 5, "\\%03u", c);
                else
                        ret[at++] = (char)c;
        }
        snprintf(ret + at, FAULT_QUOTE_SIZE - at, "%s\"", i < n ? "..." : "");
        return ret;
}
