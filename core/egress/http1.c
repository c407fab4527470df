#include "egress/http1_private.h"

/* Empty lines before a request are taken and not passed on. Returns whether the byte begins the request. */
static bool feed_start(struct rv_http1 *p, uint8_t c, enum rv_denial *ret_denial)
{
        if (p->is_after_cr) {
                p->is_after_cr = false;
                if (c != '\n' || ++p->n_blank > RV_HTTP1_BLANK_MAX)
                        *ret_denial = RV_DENIAL_HTTP_MALFORMED;
                return false;
        }
        p->is_after_cr = c == '\r';
        if (p->is_after_cr)
                return false;
        p->state = RV__HTTP1_IN_HEAD;
        p->n_blank = 0;
        p->n_line = 0;
        p->head.size = 0;
        p->n_method = p->n_target = p->n_host_text = 0;
        return true;
}

/* Where a line ends is all that is looked at until the head is whole. Returns whether the byte ends it. */
static bool feed_line(struct rv_http1 *p, uint8_t c, enum rv_denial *ret_denial)
{
        bool is_empty = p->n_line == 0;

        if (p->is_after_cr) {
                p->is_after_cr = false;
                p->n_line = 0;
                if (c != '\n')
                        *ret_denial = RV_DENIAL_HTTP_MALFORMED;
                return is_empty;
        }
        if (c == '\r') {
                p->is_after_cr = true;
                return false;
        }
        if (!rv__http1_is_text(c))
                *ret_denial = RV_DENIAL_HTTP_MALFORMED;
        p->n_line++;
        return false;
}

/* What a head that is whole makes of the bytes that follow it. */
static void begin_body(struct rv_http1 *p)
{
        p->n_requests++;
        p->n_left = p->n_content;
        p->state = p->is_chunked ? RV__HTTP1_CHUNK_SIZE : p->n_content ? RV__HTTP1_CONTENT : RV__HTTP1_START;
}

static int refuse(struct rv_http1 *p, enum rv_denial denial, size_t *ret_taken)
{
        p->state = RV__HTTP1_REFUSED;
        p->denial = denial;
        *ret_taken = 0;
        return RV_HTTP1_REFUSED;
}

static int feed_head(struct rv_http1 *p, const uint8_t *data, size_t n, size_t *ret_taken)
{
        enum rv_denial denial = RV_DENIAL_NONE;
        size_t start = n, i = 0;   /* of the bytes that belong to the head */
        bool is_whole = false;

        while (i < n && p->state == RV__HTTP1_START && !denial) {
                if (feed_start(p, data[i], &denial))
                        start = i;
                else
                        i++;
        }
        if (p->state == RV__HTTP1_IN_HEAD)
                start = i;
        for (; i < n && !is_whole && !denial; i++) {
                if (p->head.size + (i - start) >= RV_HTTP1_HEAD_MAX)
                        denial = RV_DENIAL_HTTP_TOO_LARGE;
                else
                        is_whole = feed_line(p, data[i], &denial);
        }
        if (denial)
                return refuse(p, denial, ret_taken);
        *ret_taken = i;
        if (i > start)
                rv_buf_append(&p->head, data + start, i - start);
        if (rv_buf_error(&p->head) < 0)
                return rv_trace(-ENOMEM);
        if (!is_whole)
                return RV_HTTP1_MORE;
        denial = rv__http1_read_head(p);
        if (denial)
                return refuse(p, denial, ret_taken);
        begin_body(p);
        return RV_HTTP1_HEAD;
}

static int feed_content(struct rv_http1 *p, size_t n, size_t *ret_taken)
{
        *ret_taken = (size_t)RV_MIN((uint64_t)n, p->n_left);
        p->n_left -= *ret_taken;
        if (p->n_left == 0)
                p->state = RV__HTTP1_START;
        return RV_HTTP1_BODY;
}

int rv_http1_feed(struct rv_http1 *p, const void *data, size_t n, size_t *ret_taken)
{
        int r;

        *ret_taken = 0;
        if (p->state == RV__HTTP1_REFUSED)
                return RV_HTTP1_REFUSED;
        if (n == 0)
                return RV_HTTP1_MORE;
        switch (p->state) {
        case RV__HTTP1_START:
        case RV__HTTP1_IN_HEAD:
                return rv_trace(feed_head(p, data, n, ret_taken));
        case RV__HTTP1_CONTENT:
                return feed_content(p, n, ret_taken);
        default:
                r = rv__http1_feed_chunked(p, data, n, ret_taken);
                if (r < 0)
                        return rv_trace(r);
                return r ? refuse(p, (enum rv_denial)r, ret_taken) : RV_HTTP1_BODY;
        }
}

bool rv_http1_is_between(const struct rv_http1 *p)
{
        return p->state == RV__HTTP1_START && !p->is_after_cr;
}

unsigned rv_http1_status(enum rv_denial denial)
{
        switch (denial) {
        case RV_DENIAL_HTTP_EXPECT: return 417;
        case RV_DENIAL_UNRESOLVED: return 502;
        default: return 403;
        }
}

void rv_http1_fini(struct rv_http1 *p)
{
        rv_buf_fini(&p->head);
        rv_buf_fini(&p->line);
        *p = (struct rv_http1){ 0 };
}
