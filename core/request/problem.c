#include "request/problem.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *rv_fault_code_name(enum rv_fault_code code)
{
        static const char *const names[_RV_FAULT_MAX] = {
#define RV_FAULT_X(upper, lower) [RV_FAULT_##upper] = #lower,
                RV_FAULT_CODES(RV_FAULT_X)
#undef RV_FAULT_X
        };

        return names[code];
}

int rv_fault_set(struct rv_fault *fault, enum rv_fault_code code, const char *fmt, ...)
{
        va_list ap;

        if (fault) {
                fault->code = code;
                va_start(ap, fmt);
                vsnprintf(fault->message, sizeof(fault->message), fmt, ap);
                va_end(ap);
        }
        return 1;
}

const char *rv_fault_quote(const char *text, size_t n, char ret[RV_FAULT_QUOTE_SIZE])
{
        size_t shown = RV_MIN(n, (size_t)40), at = 0;

        ret[at++] = '"';
        for (size_t i = 0; i < shown; i++) {
                uint8_t c = (uint8_t)text[i];

                if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
                        ret[at++] = (char)c;
                else
                        at += (size_t)snprintf(ret + at, RV_FAULT_QUOTE_SIZE - at, "\\%03u", c);
        }
        snprintf(ret + at, RV_FAULT_QUOTE_SIZE - at, "%s\"", shown < n ? "..." : "");
        return ret;
}

struct rv_problem *rv_problem_new(int status, const char *type, const char *title)
{
        struct rv_problem *p = calloc(1, sizeof(*p));

        if (!p)
                return NULL;
        p->status = status;
        snprintf(p->type, sizeof(p->type), "%s", type);
        snprintf(p->title, sizeof(p->title), "%s", title);
        return p;
}

void rv_problem_free(struct rv_problem *p)
{
        if (!p)
                return;
        for (size_t i = 0; i < p->n_faults; i++) {
                free(p->faults[i].pointer);
                free(p->faults[i].message);
        }
        free(p->faults);
        free(p);
}

void rv_problem_detail(struct rv_problem *p, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(p->detail, sizeof(p->detail), fmt, ap);
        va_end(ap);
}

void rv_problem_add(struct rv_problem *p, const char *pointer, enum rv_fault_code code, const char *fmt, ...)
{
        struct rv_problem_fault *fault;
        va_list ap;
        int r;

        if (p->is_failed)
                return;
        if (p->n_faults == RV_PROBLEM_FAULTS_MAX) {
                p->n_left_out++;
                return;
        }
        if (!p->faults)
                p->faults = calloc(RV_PROBLEM_FAULTS_MAX, sizeof(*p->faults));
        if (!p->faults) {
                p->is_failed = true;
                return;
        }
        fault = &p->faults[p->n_faults];
        fault->code = code;
        fault->pointer = strdup(pointer);
        va_start(ap, fmt);
        r = vasprintf(&fault->message, fmt, ap);
        va_end(ap);
        if (r < 0)
                fault->message = NULL;
        p->is_failed = !fault->pointer || !fault->message;
        p->n_faults++;   /* also after a failure: what was allocated is released with the problem */
}

json_t *rv_problem_to_json(const struct rv_problem *p)
{
        json_t *errors = json_array(), *o;
        char message[128];
        int r = 0;

        for (size_t i = 0; i < p->n_faults && r == 0; i++)
                r = json_array_append_new(errors, json_pack("{s:s, s:s, s:s}", "pointer", p->faults[i].pointer, "code",
                                                            rv_fault_code_name(p->faults[i].code), "message",
                                                            p->faults[i].message));
        if (p->n_left_out && r == 0) {
                snprintf(message, sizeof(message), "%zu more faults are not listed: correct these first", p->n_left_out);
                r = json_array_append_new(errors, json_pack("{s:s, s:s, s:s}", "pointer", "", "code",
                                                            rv_fault_code_name(RV_FAULT_LENGTH), "message", message));
        }
        if (r < 0) {
                json_decref(errors);
                return NULL;
        }
        o = json_pack("{s:s, s:s, s:s, s:i}", "schema", "reeve.problem/1", "type", p->type, "title", p->title, "status",
                      p->status);
        if (p->detail[0])
                r = json_object_set_new(o, "detail", json_string(p->detail));
        if (p->retry_after_s && r == 0)
                r = json_object_set_new(o, "retry_after_s", json_integer((json_int_t)p->retry_after_s));
        if (r < 0 || json_object_set(o, "errors", errors) < 0) {
                json_decref(o);
                o = NULL;
        }
        json_decref(errors);
        return o;
}

int rv_pointer_append(struct rv_buf *pointer, const char *token, size_t n)
{
        size_t escaped = n;

        for (size_t i = 0; i < n; i++)
                escaped += token[i] == '~' || token[i] == '/';
        /* What cannot be written in JSON, or in the C string that a pointer is kept in, has no pointer. */
        if (pointer->size + 1 + escaped > RV_PROBLEM_POINTER_MAX || memchr(token, 0, n) ||
            !rv_utf8_check(token, n, NULL))
                return 1;
        rv_buf_putc(pointer, '/');
        for (size_t i = 0; i < n; i++) {
                if (token[i] == '~')
                        rv_buf_puts(pointer, "~0");
                else if (token[i] == '/')
                        rv_buf_puts(pointer, "~1");
                else
                        rv_buf_putc(pointer, token[i]);
        }
        return rv_buf_error(pointer);
}

int rv_pointer_append_index(struct rv_buf *pointer, size_t index)
{
        char token[24];

        return rv_pointer_append(pointer, token, (size_t)snprintf(token, sizeof(token), "%zu", index));
}
