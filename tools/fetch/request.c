#include "request.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define DEPTH_MAX 2u
#define URL_BYTES_MAX ((size_t)8192)
#define HEADERS_MAX ((size_t)64)
#define HEADER_BYTES_MAX ((size_t)8192)
#define PATH_BYTES_MAX ((size_t)4095)
#define ALNUM "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define TOKEN "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static const char *const methods[] = { [FETCH_GET] = "GET", [FETCH_HEAD] = "HEAD", [FETCH_POST] = "POST", [FETCH_PUT] = "PUT" };

static bool is_printable(const char *s)
{
        for (; *s; s++)
                if (*s <= 0x20 || *s >= 0x7f)
                        return false;
        return true;
}

/* ---- What makes the line usable at all ---- */

static int take_frame(struct fetch_request *q, struct rv_error *err)
{
        const char *id = rv_json_get_string(q->line, "id", "");
        const json_t *bytes = json_object_get(q->line, "body_bytes");

        if (!*id || strlen(id) >= sizeof(q->id) || !is_printable(id))
                return rv_error_set(err, rv_raise(-EPROTO), "a request needs an id of 1 to 64 printable ASCII characters");
        memcpy(q->id, id, strlen(id) + 1);
        if (!bytes)
                return 0;
        if (!json_is_integer(bytes) || json_integer_value(bytes) < 0 ||
                json_integer_value(bytes) > (json_int_t)RV_FETCH_BODY_BYTES_MAX)
                return rv_error_set(err, rv_raise(-EPROTO), "body_bytes of request %s has to be a number from 0 to %zu", id, RV_FETCH_BODY_BYTES_MAX);
        q->body_bytes = (size_t)json_integer_value(bytes);
        return 0;
}

/* ---- The members ---- */

static int take_method(struct fetch_request *q, const json_t *value, struct rv_error *err)
{
        for (size_t i = 0; json_is_string(value) && i < RV_N_ELEMENTS(methods); i++) {
                if (strcmp(json_string_value(value), methods[i]) != 0)
                        continue;
                q->method = (enum fetch_method)i;
                return 0;
        }
        return rv_error_set(err, FETCH_E_USAGE, "method has to be GET, HEAD, POST or PUT");
}

static int take_url(const char **ret, const char *name, const json_t *value, struct rv_error *err)
{
        const char *s = json_is_string(value) ? json_string_value(value) : "";

        if ((strncmp(s, "http://", 7) != 0 && strncmp(s, "https://", 8) != 0) || strlen(s) > URL_BYTES_MAX || !is_printable(s))
                return rv_error_set(err, FETCH_E_USAGE, "%s has to begin with http:// or https://, in printable ASCII of at most %zu characters", name,
                                    URL_BYTES_MAX);
        *ret = s;
        return 0;
}

/* What belongs to the transport is the helper's: with it a caller could make two requests of one, or ask for more than is bounded. */
static bool is_transports(const char *name, size_t n)
{
        static const char *const names[] = { "accept-encoding", "connection", "content-length", "expect", "host", "keep-alive",
                                             "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
                                             "user-agent" };

        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++)
                if (strlen(names[i]) == n && strncasecmp(name, names[i], n) == 0)
                        return true;
        return false;
}

static const char *judge_header(const json_t *value)
{
        const char *s = json_is_string(value) ? json_string_value(value) : "";
        size_t n = strspn(s, TOKEN);

        if (!n || s[n] != ':' || strlen(s) > HEADER_BYTES_MAX)
                return "has to be a text \"Name: value\" of at most 8192 bytes";
        if (is_transports(s, n))
                return "belongs to the transport";
        s += n + 1;
        for (const char *p = s; *p; p++)
                if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
                        return "has a control character in its value";
        return s[strspn(s, " \t")] ? NULL : "has no value";
}

static int take_headers(struct fetch_request *q, const json_t *value, struct rv_error *err)
{
        const json_t *header;
        size_t i;

        if (!json_is_array(value) || json_array_size(value) > HEADERS_MAX)
                return rv_error_set(err, FETCH_E_USAGE, "headers has to be a list of at most %zu texts", HEADERS_MAX);
        json_array_foreach((json_t *)value, i, header) {
                const char *why = judge_header(header);

                if (why)
                        return rv_error_set(err, FETCH_E_USAGE, "header %zu %s", i, why);
        }
        q->headers = value;
        return 0;
}

static int take_ca(struct fetch_request *q, const json_t *value, struct rv_error *err)
{
        const char *s = json_is_string(value) ? json_string_value(value) : "";

        if (*s != '/' || strlen(s) > PATH_BYTES_MAX)
                return rv_error_set(err, FETCH_E_USAGE, "ca has to be an absolute path");
        q->ca = s;
        return 0;
}

static int take_file(struct fetch_request *q, const json_t *value, struct rv_error *err)
{
        const char *s = json_is_string(value) ? json_string_value(value) : "";

        if (!*s || !strchr(ALNUM, *s) || strlen(s) > RV_FETCH_FILE_NAME_MAX || s[strspn(s, ALNUM "._+@!-")])
                return rv_error_set(err, FETCH_E_USAGE, "file has to be a name of at most %u letters, digits and ._+@!-, the first a letter or a digit", RV_FETCH_FILE_NAME_MAX);
        q->file = s;
        return 0;
}

size_t fetch_resolve_host(const char *text)
{
        return strspn(text, ALNUM "._-");
}

/* libcurl's syntax has more to it: removals, wildcards, several addresses. */
static bool is_resolve(const char *s)
{
        size_t n = fetch_resolve_host(s), n_port = s[n] == ':' ? strspn(s + n + 1, "0123456789") : 0, n_address;
        const char *address = s + n + 1 + n_port + 1;
        unsigned char bytes[16];
        char copy[INET6_ADDRSTRLEN];
        bool is_bracketed;

        if (!n || !strchr(ALNUM, *s) || n > 253 || !n_port || n_port > 5 || s[n + 1 + n_port] != ':' ||
                atoi(s + n + 1) < 1 || atoi(s + n + 1) > UINT16_MAX)
                return false;
        is_bracketed = *address == '[';
        address += is_bracketed;
        n_address = strcspn(address, "]");
        if (n_address >= sizeof(copy) || (is_bracketed ? strcmp(address + n_address, "]") != 0 : address[n_address] != 0))
                return false;
        memcpy(copy, address, n_address);
        copy[n_address] = 0;
        return (!is_bracketed && inet_pton(AF_INET, copy, bytes) == 1) || inet_pton(AF_INET6, copy, bytes) == 1;
}

static int take_resolve(struct fetch_request *q, const json_t *value, struct rv_error *err)
{
        const json_t *entry;
        size_t i;

        if (!json_is_array(value) || json_array_size(value) > RV_FETCH_RESOLVE_MAX)
                return rv_error_set(err, FETCH_E_USAGE, "resolve has to be a list of at most %u texts", RV_FETCH_RESOLVE_MAX);
        json_array_foreach((json_t *)value, i, entry)
                if (!json_is_string(entry) || !is_resolve(json_string_value(entry)))
                        return rv_error_set(err, FETCH_E_USAGE, "resolve %zu has to be a text \"host:port:address\"", i);
        q->resolve = value;
        return 0;
}

static int take_number(uint64_t *ret, const char *name, const json_t *value, uint64_t max, struct rv_error *err)
{
        if (!json_is_integer(value) || json_integer_value(value) < 1 || (uint64_t)json_integer_value(value) > max)
                return rv_error_set(err, FETCH_E_USAGE, "%s has to be a number from 1 to %llu", name, (unsigned long long)max);
        *ret = (uint64_t)json_integer_value(value);
        return 0;
}

static int take_flag(bool *ret, const char *name, const json_t *value, struct rv_error *err)
{
        *ret = json_is_true(value);
        return json_is_boolean(value) ? 0 : rv_error_set(err, FETCH_E_USAGE, "%s has to be true or false", name);
}

static int take_member(struct fetch_request *q, const char *name, const json_t *value, struct rv_error *err)
{
        uint64_t number = 0;
        int r;

        if (strcmp(name, "id") == 0 || strcmp(name, "body_bytes") == 0)
                return 0;
        if (strcmp(name, "method") == 0)
                return take_method(q, value, err);
        if (strcmp(name, "url") == 0)
                return take_url(&q->url, "url", value, err);
        if (strcmp(name, "proxy") == 0)
                return take_url(&q->proxy, "proxy", value, err);
        if (strcmp(name, "headers") == 0)
                return take_headers(q, value, err);
        if (strcmp(name, "ca") == 0)
                return take_ca(q, value, err);
        if (strcmp(name, "file") == 0)
                return take_file(q, value, err);
        if (strcmp(name, "resolve") == 0)
                return take_resolve(q, value, err);
        if (strcmp(name, "is_public_only") == 0)
                return take_flag(&q->is_public_only, name, value, err);
        if (strcmp(name, "tells_redirects") == 0)
                return take_flag(&q->tells_redirects, name, value, err);
        if (strcmp(name, "max_bytes") == 0) {
                r = take_number(&number, name, value, json_object_get(q->line, "file") ? RV_FETCH_FILE_BYTES_MAX : RV_FETCH_MAX_BYTES_MAX, err);
                q->max_bytes = r ? q->max_bytes : (size_t)number;
                return r;
        }
        if (strcmp(name, "timeout_ms") == 0) {
                r = take_number(&number, name, value, RV_FETCH_TIMEOUT_MS_MAX, err);
                q->timeout_ms = r ? q->timeout_ms : (uint32_t)number;
                return r;
        }
        return rv_error_set(err, FETCH_E_USAGE, "a request has no member of that name; it may have id url method headers body_bytes max_bytes timeout_ms ca proxy file resolve is_public_only tells_redirects");
}

static int take_members(struct fetch_request *q, struct rv_error *err)
{
        const char *name;
        json_t *value;
        int r = 0;

        json_object_foreach(q->line, name, value) {
                r = take_member(q, name, value, err);
                if (r)
                        return r;
        }
        if (!q->url)
                return rv_error_set(err, FETCH_E_USAGE, "a request needs a url");
        if (q->body_bytes && q->method != FETCH_POST && q->method != FETCH_PUT)
                return rv_error_set(err, FETCH_E_USAGE, "%s has no body", methods[q->method]);
        return 0;
}

int fetch_request_read(const char *line, size_t n, struct fetch_request *ret, struct rv_error *err)
{
        struct fetch_request q = { .max_bytes = RV_FETCH_MAX_BYTES_DEFAULT, .timeout_ms = RV_FETCH_TIMEOUT_MS_DEFAULT };
        int r;

        if (n > RV_FETCH_LINE_BYTES_MAX)
                return rv_error_set(err, rv_raise(-EPROTO), "a request line of more than %zu bytes", RV_FETCH_LINE_BYTES_MAX);
        r = rv_json_read(line, n, DEPTH_MAX, &q.line, NULL);
        if (r == 0 && !json_is_object(q.line))
                r = -EINVAL;
        if (r < 0 && r != -ENOMEM)
                r = rv_error_set(err, rv_raise(-EPROTO), "a request line is no JSON object, or one nested deeper than %u", DEPTH_MAX);
        if (r == 0)
                r = take_frame(&q, err);
        if (r == 0)
                r = take_members(&q, err);
        if (r < 0) {
                fetch_request_fini(&q);
                return rv_trace(r);
        }
        *ret = q;
        return r;
}

/* jansson's texts are its own memory, but nobody else's any more. */
static void wipe(const json_t *text)
{
        if (json_is_string(text))
                explicit_bzero((char *)json_string_value(text), json_string_length(text));
}

void fetch_request_fini(struct fetch_request *q)
{
        const json_t *header;
        size_t i;

        wipe(json_object_get(q->line, "url"));
        wipe(json_object_get(q->line, "proxy"));
        json_array_foreach((json_t *)q->headers, i, header)
                wipe(header);
        json_decref(q->line);
        rv_buf_fini(&q->body);
        *q = (struct fetch_request){ 0 };
}
