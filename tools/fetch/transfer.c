#include "transfer.h"

#include "headers.h"
#include "judge.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static void url_cleanup(CURLU **u)
{
        curl_url_cleanup(*u);
}

static void text_free(char **text)
{
        curl_free(*text);
}

/* ---- What libcurl calls ---- */

/* Of a redirect or a refusal nothing is kept. */
static size_t write_file(struct transfer *t, const char *data, size_t n)
{
        long status = 0;
        int r = 0;

        if (n > t->q.max_bytes - t->file_bytes) {
                t->is_too_large = true;
                return 0;
        }
        curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
        if (status >= 200 && status < 300)
                r = rv_write_all(t->file_fd, data, n);
        t->file_errno = -r;
        t->file_bytes += n;
        return r < 0 ? 0 : n;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
        struct transfer *t = arg;

        n *= size;
        if (t->q.file)
                return write_file(t, data, n);
        if (n > t->q.max_bytes - t->body.size) {
                t->is_too_large = true;
                return 0;
        }
        return rv_buf_append(&t->body, data, n) < 0 ? 0 : n;
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
        struct transfer *t = arg;

        n *= size;
        /* Each answer begins with a status line: those of 100 Continue and of redirects are forgotten then. */
        if (n >= 5 && memcmp(data, "HTTP/", 5) == 0)
                json_object_clear(t->got_headers);
        t->got_header_bytes += n;
        if (t->got_header_bytes > RV_FETCH_HEADER_BYTES_MAX) {
                t->is_too_large = true;
                return 0;
        }
        return headers_add(t->got_headers, data, n) < 0 ? 0 : n;
}

/* Before a connection is begun: it never is, to an address that is refused. */
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
        struct transfer *t = arg;
        struct rv_address a;

        if (purpose != CURLSOCKTYPE_IPCXN || *t->refused)
                return CURL_SOCKET_BAD;
        if (t->is_judged && !t->q.proxy &&
                (rv_address_from_sockaddr(&address->addr, address->addrlen, &a, NULL) < 0 ||
                        !judge_is_public(&a, t->refused, sizeof(t->refused))))
                return CURL_SOCKET_BAD;
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Before a request is sent: a connection that is there already may have been made for one that is not judged. */
static int on_connected(void *arg, char *ip, char *own_ip, int port, int own_port)
{
        struct transfer *t = arg;
        struct rv_address a;

        if (!*t->refused && (!t->is_judged || t->q.proxy))
                return CURL_PREREQFUNC_OK;
        if (!*t->refused && rv_address_parse(ip, strlen(ip), &a) == 0 &&
                judge_is_public(&a, t->refused, sizeof(t->refused)))
                return CURL_PREREQFUNC_OK;
        if (!*t->refused)
                snprintf(t->refused, sizeof(t->refused), "an address that cannot be read");
        return CURL_PREREQFUNC_ABORT;
}

/* ---- Addresses ---- */

static char *url_part(CURLU *u, CURLUPart part, unsigned flags)
{
        char *text = NULL;

        return curl_url_get(u, part, &text, flags) == CURLUE_OK ? text : NULL;
}

static bool has_resolve(const struct transfer *t, const char *host, const char *port)
{
        const json_t *entry;
        size_t i, n, n_port = strlen(port);

        json_array_foreach((json_t *)t->q.resolve, i, entry) {
                const char *text = json_string_value(entry);

                n = fetch_resolve_host(text);
                if (n == strlen(host) && strncasecmp(text, host, n) == 0 && strncmp(text + n + 1, port, n_port) == 0 &&
                        text[n + 1 + n_port] == ':')
                        return true;
        }
        return false;
}

/* Are its addresses to be judged? One that stands in the URL itself is at once: a proxy would connect to it. */
static void judge_host(struct transfer *t, CURLU *u)
{
        _cleanup_(text_free) char *host = url_part(u, CURLUPART_HOST, 0);
        _cleanup_(text_free) char *port = url_part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT);
        bool is_bracketed = host && *host == '[';
        struct rv_address a;

        t->is_judged = t->q.is_public_only && !(host && port && has_resolve(t, host, port));
        if (t->is_judged && host && rv_address_parse(host + is_bracketed, strcspn(host + is_bracketed, "]"), &a) == 0)
                (void)judge_is_public(&a, t->refused, sizeof(t->refused));
}

/* Credentials go where they were meant for: into options of the handle, out of the address. */
static int set_address(struct transfer *t, const char *address, bool has_credentials, struct rv_error *err)
{
        _cleanup_(url_cleanup) CURLU *u = curl_url();
        _cleanup_(text_free) char *user = NULL;
        _cleanup_(text_free) char *password = NULL;
        _cleanup_(text_free) char *bare = NULL;
        CURLUcode c = u ? curl_url_set(u, CURLUPART_URL, address, 0) : CURLUE_OUT_OF_MEMORY;

        if (c != CURLUE_OK)
                return rv_error_set(err, FETCH_E_USAGE, "url: %s", curl_url_strerror(c));
        user = url_part(u, CURLUPART_USER, CURLU_URLDECODE);
        password = url_part(u, CURLUPART_PASSWORD, CURLU_URLDECODE);
        if (has_credentials && (user || password)) {
                curl_easy_setopt(t->easy, CURLOPT_USERNAME, user ? user : "");
                curl_easy_setopt(t->easy, CURLOPT_PASSWORD, password ? password : "");
        }
        curl_url_set(u, CURLUPART_USER, NULL, 0);
        curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
        curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
        judge_host(t, u);
        bare = url_part(u, CURLUPART_URL, 0);
        if (!bare || curl_easy_setopt(t->easy, CURLOPT_URL, bare) != CURLE_OK)
                return rv_raise(-ENOMEM);
        return 0;
}

/* "scheme://host:port", or NULL. */
static char *origin_of(const char *address)
{
        _cleanup_(url_cleanup) CURLU *u = curl_url();
        _cleanup_(text_free) char *scheme = NULL;
        _cleanup_(text_free) char *host = NULL;
        _cleanup_(text_free) char *port = NULL;
        char *origin;

        if (!u || curl_url_set(u, CURLUPART_URL, address, 0) != CURLUE_OK)
                return NULL;
        scheme = url_part(u, CURLUPART_SCHEME, 0);
        host = url_part(u, CURLUPART_HOST, 0);
        port = url_part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT);
        if (!scheme || !host || !port || asprintf(&origin, "%s://%s:%s", scheme, host, port) < 0)
                return NULL;
        return origin;
}

/* ---- Beginning ---- */

static int set_headers(struct transfer *t)
{
        static const char *const own[] = { "Expect:",
                "Content-Type:" }; /* without a value: not those that libcurl would add */
        struct curl_slist *more;
        json_t *header;
        bool has_type = false;
        size_t i;

        json_array_foreach((json_t *)t->q.headers, i, header) {
                has_type |= strncasecmp(json_string_value(header), "content-type:", 13) == 0;
                more = curl_slist_append(t->headers, json_string_value(header));
                if (!more)
                        return rv_raise(-ENOMEM);
                t->headers = more;
        }
        for (i = 0; i < RV_N_ELEMENTS(own) - has_type; i++) {
                more = curl_slist_append(t->headers, own[i]);
                if (!more)
                        return rv_raise(-ENOMEM);
                t->headers = more;
        }
        return curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK ? 0 : rv_raise(-ENOMEM);
}

static CURLcode set_resolve(struct transfer *t)
{
        struct curl_slist *more;
        const json_t *entry;
        size_t i;

        json_array_foreach((json_t *)t->q.resolve, i, entry) {
                more = curl_slist_append(t->resolve, json_string_value(entry));
                if (!more)
                        return CURLE_OUT_OF_MEMORY;
                t->resolve = more;
        }
        return curl_easy_setopt(t->easy, CURLOPT_RESOLVE, t->resolve);
}

static CURLcode set_method(struct transfer *t)
{
        CURLcode c;

        if (t->q.method == FETCH_HEAD)
                return curl_easy_setopt(t->easy, CURLOPT_NOBODY, 1L);
        if (t->q.method == FETCH_GET)
                return curl_easy_setopt(t->easy, CURLOPT_HTTPGET, 1L);
        c = curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->q.body.size);
        if (c == CURLE_OK)
                c = curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, t->q.body.data ? t->q.body.data : "");
        if (c == CURLE_OK && t->q.method == FETCH_PUT)
                c = curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, "PUT");
        return c;
}

/* How it may connect: TLS 1.2 and above, only the trust and the proxy that the request names. */
static CURLcode set_transport(struct transfer *t)
{
        CURLcode c;

        c = curl_easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
        if (c == CURLE_OK)
                c = curl_easy_setopt(t->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        if (c == CURLE_OK)
                c = curl_easy_setopt(t->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        if (c == CURLE_OK)
                c = curl_easy_setopt(t->easy, CURLOPT_PROXY_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        if (c == CURLE_OK)
                c = curl_easy_setopt(t->easy, CURLOPT_PROXY, t->q.proxy ? t->q.proxy : "");
        if (c == CURLE_OK)
                c = curl_easy_setopt(t->easy, CURLOPT_NOPROXY, "");
        if (c == CURLE_OK)
                c = curl_easy_setopt(t->easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
        if (c == CURLE_OK)
                c = curl_easy_setopt(t->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
        if (c != CURLE_OK || !t->q.ca)
                return c;
        c = curl_easy_setopt(t->easy, CURLOPT_CAINFO, t->q.ca);
        if (c == CURLE_OK)
                c = curl_easy_setopt(t->easy, CURLOPT_CAPATH, NULL);
        if (c == CURLE_OK)
                c = curl_easy_setopt(t->easy, CURLOPT_PROXY_CAINFO, t->q.ca);
        return c == CURLE_OK ? curl_easy_setopt(t->easy, CURLOPT_PROXY_CAPATH, NULL) : c;
}

static int set_options(struct transfer *t)
{
        CURLcode c = set_transport(t);

        if (c == CURLE_OK)
                c = set_method(t);
        if (c == CURLE_OK)
                c = set_resolve(t);
        if (c == CURLE_OK)
                c = curl_easy_setopt(t->easy, CURLOPT_USERAGENT, "reeve/" RV_VERSION);
        if (c != CURLE_OK)
                return rv_raise(-ENOMEM);
        /* These take no memory and so cannot fail. */
        if (t->q.method != FETCH_HEAD)
                curl_easy_setopt(t->easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)t->q.max_bytes);
        curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(t->easy, CURLOPT_QUICK_EXIT, 1L);
        curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
        curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->curl_error);
        curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
        curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
        curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
        curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETDATA, t);
        curl_easy_setopt(t->easy, CURLOPT_PREREQFUNCTION, on_connected);
        curl_easy_setopt(t->easy, CURLOPT_PREREQDATA, t);
        return set_headers(t);
}

static int open_file(struct transfer *t, int dir_fd, struct rv_error *err)
{
        if (!t->q.file)
                return 0;
        if (dir_fd < 0)
                return rv_error_set(err, FETCH_E_USAGE, "file: there is no directory (--files)");
        t->file_fd = openat(dir_fd, t->q.file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (t->file_fd < 0)
                return rv_error_set(err, FETCH_E_USAGE, "file: %s cannot be made: %s", t->q.file, strerror(errno));
        return 0;
}

int transfer_new(struct fetch_request *take_q, int dir_fd, struct transfer **ret, struct rv_error *err)
{
        _cleanup_(transfer_freep) struct transfer *t = calloc(1, sizeof(*t));
        int r;

        if (!t)
                return rv_raise(-ENOMEM);
        t->file_fd = -EBADF;
        t->easy = curl_easy_init();
        t->got_headers = json_object();
        if (!t->easy || !t->got_headers)
                return rv_raise(-ENOMEM);
        t->q = *take_q;
        r = set_options(t);
        if (r == 0)
                r = set_address(t, t->q.url, true, err);
        if (r == 0)
                r = open_file(t, dir_fd, err);
        if (r) {
                t->q = (struct fetch_request){ 0 };   /* still the caller's */
                return rv_trace(r);
        }
        *take_q = (struct fetch_request){ 0 };
        t->deadline_us = rv_boot_us() + (uint64_t)t->q.timeout_ms * 1000;
        *ret = rv_take(&t);
        return 0;
}

int transfer_add(struct transfer *t, CURLM *multi)
{
        uint64_t now = rv_boot_us();
        long left = now < t->deadline_us ? (long)((t->deadline_us - now) / 1000) : 0;

        curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, RV_MAX(left, 1L));
        curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, RV_MAX(left, 1L));
        return curl_multi_add_handle(multi, t->easy) == CURLM_OK ? 0 : rv_raise(-ENOMEM);
}

void transfer_free(struct transfer *t)
{
        curl_easy_cleanup(t->easy);
        curl_slist_free_all(t->headers);
        curl_slist_free_all(t->resolve);
        rv_close(t->file_fd);
        fetch_request_fini(&t->q);
        json_decref(t->got_headers);
        rv_buf_fini(&t->body);
        free(t);
}

/* ---- Its end ---- */

static enum rv_fetch_code code_of(CURLcode c)
{
        switch (c) {
        case CURLE_OPERATION_TIMEDOUT:
                return RV_FETCH_TIMEOUT;
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
        case CURLE_COULDNT_CONNECT:
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
        case CURLE_GOT_NOTHING:
        case CURLE_PARTIAL_FILE:
        case CURLE_PROXY:
                return RV_FETCH_UNREACHABLE;
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CIPHER:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_CRL_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        case CURLE_SSL_INVALIDCERTSTATUS:
        case CURLE_SSL_CLIENTCERT:
        case CURLE_SSL_ENGINE_INITFAILED:
        case CURLE_SSL_ENGINE_NOTFOUND:
        case CURLE_SSL_ENGINE_SETFAILED:
                return RV_FETCH_TLS;
        case CURLE_FILESIZE_EXCEEDED:
                return RV_FETCH_TOO_LARGE;
        case CURLE_URL_MALFORMAT:
                return RV_FETCH_USAGE;
        case CURLE_OUT_OF_MEMORY:
        case CURLE_WRITE_ERROR:      /* ours, for want of memory */
                return RV_FETCH_INTERNAL;
        default:
                return RV_FETCH_PROTOCOL;
        }
}

static int conclude_with(struct transfer *t, enum rv_fetch_code code, const char *before, const char *what)
{
        t->code = code;
        rv_error_set(&t->why, 1, "%s%s", before, what);
        return 0;
}

static int conclude_fault(struct transfer *t, CURLcode result)
{
        long proxy_status = 0;

        if (t->is_too_large)
                return conclude_with(t, RV_FETCH_TOO_LARGE, "", t->got_header_bytes > RV_FETCH_HEADER_BYTES_MAX
                                                                          ? "the answer has more than 64 KiB of headers"
                                                                          : "the answer's body has more than max_bytes");
        if (*t->refused)
                return conclude_with(t, RV_FETCH_REFUSED_ADDRESS, "the address is not of the public Internet: ", t->refused);
        if (t->file_errno)
                return conclude_with(t, RV_FETCH_INTERNAL, "the file cannot be written: ", strerror(t->file_errno));
        curl_easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
        if (proxy_status >= 300)
                return conclude_with(t, RV_FETCH_UNREACHABLE, "the proxy refuses: ", t->curl_error);
        return conclude_with(t, code_of(result), "", *t->curl_error ? t->curl_error : curl_easy_strerror(result));
}

/* Does the method stay what it is? Of 301 and 302 a GET is made of a POST by most, and the body would be lost. */
static bool keeps_method(const struct transfer *t)
{
        return t->status == 307 || t->status == 308 || t->q.method == FETCH_GET || t->q.method == FETCH_HEAD;
}

static int follow(struct transfer *t, CURLM *multi, const char *target)
{
        _cleanup_(rv_freep) char *here = origin_of(t->q.url);
        _cleanup_(rv_freep) char *there = origin_of(target);
        struct rv_error err = { 0 };

        if (!here || !there)
                return conclude_with(t, RV_FETCH_REDIRECT_REFUSED, "redirected to another place: ", "an address that cannot be read");
        if (strcasecmp(here, there) != 0 && !t->q.tells_redirects)
                return conclude_with(t, RV_FETCH_REDIRECT_REFUSED, "redirected to another place: ", there);
        if (strcasecmp(here, there) != 0)
                return json_object_set_new(t->got_headers, "location", json_string(target)) < 0 ? conclude_with(t, RV_FETCH_PROTOCOL, "", "redirected to what is no address") : 0;
        if (!keeps_method(t))
                return conclude_with(t, RV_FETCH_REDIRECT_REFUSED, "redirected in a way that does not keep the method, to ", there);
        if (t->n_redirects++ == RV_FETCH_REDIRECTS_MAX)
                return conclude_with(t, RV_FETCH_REDIRECT_REFUSED, "redirected too often, at last to ", there);
        t->body.size = t->file_bytes = 0;
        t->got_header_bytes = 0;
        if (set_address(t, target, false, &err))
                return conclude_with(t, RV_FETCH_REDIRECT_REFUSED, "redirected to an address that cannot be read: ", err.message);
        return transfer_add(t, multi) < 0 ? conclude_with(t, RV_FETCH_INTERNAL, "", "out of memory") : 1;
}

static bool is_redirect(long status)
{
        return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

int transfer_conclude(struct transfer *t, CURLM *multi, CURLcode result)
{
        _cleanup_(rv_freep) char *target = NULL;
        const char *encoding;
        char *location = NULL;

        curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->status);
        if (is_redirect(t->status) && result == CURLE_OK) {
                curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &location);
                target = location ? strdup(location) : NULL;   /* it is the handle's, which is about to get another */
        }
        curl_multi_remove_handle(multi, t->easy);
        if (target)
                return follow(t, multi, target);
        if (result != CURLE_OK)
                return conclude_fault(t, result);
        if (t->status < 100 || t->status > 999)
                return conclude_with(t, RV_FETCH_PROTOCOL, "", "the answer has no status");
        /* A compressed body that was cut off would pass for a whole one: libcurl does not tell. */
        encoding = rv_json_get_string(t->got_headers, "content-encoding", "identity");
        if (strcasecmp(encoding, "identity") != 0 && t->body.size)
                return conclude_with(t, RV_FETCH_PROTOCOL, "the answer is compressed, which was not asked for: ", encoding);
        return 0;
}
