#include "audit/checkpoint.h"

#include "base/base64.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ORIGIN "reeve/"
#define ORIGIN_BYTES (sizeof(ORIGIN) - 1 + RV_LOG_ID_SIZE - 1)
#define ED25519 0x01                               /* its number in C2SP signed-note */
#define NEXT_KEY "next-key "
#define DASH "\xe2\x80\x94 "                       /* U+2014, which begins a signature's line */
#define LINES_MAX 16                               /* of a note */

/* ---- Keys ---- */

void rv_checkpoint_key_id(const struct rv_checkpoint_key *key, uint8_t ret[4])
{
        uint8_t text[ORIGIN_BYTES + 2 + RV_CHECKPOINT_KEY_BYTES], digest[RV_SHA256_SIZE];
        int n = snprintf((char *)text, sizeof(text), ORIGIN "%s\n", key->log_id);

        text[n++] = ED25519;
        memcpy(text + n, key->public_key, RV_CHECKPOINT_KEY_BYTES);
        rv_sha256(text, (size_t)n + RV_CHECKPOINT_KEY_BYTES, digest);
        memcpy(ret, digest, 4);
}

void rv_checkpoint_key_text(const struct rv_checkpoint_key *key, char ret[RV_CHECKPOINT_VERIFIER_SIZE])
{
        uint8_t id[4], bytes[1 + RV_CHECKPOINT_KEY_BYTES] = { ED25519 };
        char id_hex[9], text[RV_BASE64_SIZE(sizeof(bytes))];

        rv_checkpoint_key_id(key, id);
        rv_hex(id, sizeof(id), id_hex);
        memcpy(bytes + 1, key->public_key, RV_CHECKPOINT_KEY_BYTES);
        rv_base64(bytes, sizeof(bytes), text);
        snprintf(ret, RV_CHECKPOINT_VERIFIER_SIZE, ORIGIN "%s+%s+%s", key->log_id, id_hex, text);
}

/* "reeve/LOG_ID" at the beginning of a text. */
static bool read_origin(const char *text, size_t n, char ret_log_id[RV_LOG_ID_SIZE])
{
        if (n < ORIGIN_BYTES || memcmp(text, ORIGIN, sizeof(ORIGIN) - 1) != 0)
                return false;
        text += sizeof(ORIGIN) - 1;
        for (size_t i = 0; i < RV_LOG_ID_SIZE - 1; i++)
                if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
                        return false;
        memcpy(ret_log_id, text, RV_LOG_ID_SIZE - 1);
        ret_log_id[RV_LOG_ID_SIZE - 1] = 0;
        return true;
}

int rv_checkpoint_key_read(const char *text, size_t n, struct rv_checkpoint_key *ret)
{
        uint8_t bytes[1 + RV_CHECKPOINT_KEY_BYTES];
        char again[RV_CHECKPOINT_VERIFIER_SIZE];
        struct rv_checkpoint_key key;
        const size_t prefix = ORIGIN_BYTES + 1 + 8 + 1;

        if (n && text[n - 1] == '\n')
                n--;
        if (n < prefix || n >= sizeof(again) || !read_origin(text, n, key.log_id) ||
            rv_base64_read(text + prefix, n - prefix, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes))
                return rv_raise(-EINVAL);
        memcpy(key.public_key, bytes + 1, RV_CHECKPOINT_KEY_BYTES);
        rv_checkpoint_key_text(&key, again);
        if (strlen(again) != n || memcmp(again, text, n) != 0)
                return rv_raise(-EINVAL);
        *ret = key;
        return 0;
}

/* ---- Text ---- */

int rv_checkpoint_body(const struct rv_checkpoint *c, struct rv_buf *out)
{
        char root[RV_BASE64_SIZE(RV_SHA256_SIZE)], next[RV_CHECKPOINT_VERIFIER_SIZE];

        rv_base64(c->root, sizeof(c->root), root);
        rv_buf_printf(out, ORIGIN "%s\n%" PRIu64 "\n%s\n", c->log_id, c->size, root);
        if (c->has_next_key) {
                rv_checkpoint_key_text(&c->next_key, next);
                rv_buf_printf(out, NEXT_KEY "%s\n", next);
        }
        return rv_trace(rv_buf_error(out));
}

int rv_checkpoint_write(const struct rv_checkpoint *c, struct rv_buf *out)
{
        (void)rv_checkpoint_body(c, out);
        rv_buf_putc(out, '\n');
        for (unsigned i = 0; i < c->n_signatures; i++) {
                uint8_t bytes[4 + RV_CHECKPOINT_SIGNATURE_BYTES];
                char text[RV_BASE64_SIZE(sizeof(bytes))];

                memcpy(bytes, c->signatures[i].key_id, 4);
                memcpy(bytes + 4, c->signatures[i].bytes, RV_CHECKPOINT_SIGNATURE_BYTES);
                rv_base64(bytes, sizeof(bytes), text);
                rv_buf_printf(out, DASH ORIGIN "%s %s\n", c->log_id, text);
        }
        return rv_trace(rv_buf_error(out));
}

struct line {
        const char *text;
        size_t n;
};

/* The lines of a note, each of which ends in a newline. Their number; -EINVAL. */
static int split(const char *text, size_t n, struct line lines[LINES_MAX])
{
        int n_lines = 0;

        for (const char *p = text, *end = text + n; p < end; n_lines++) {
                const char *newline = memchr(p, '\n', (size_t)(end - p));

                if (!newline || n_lines == LINES_MAX)
                        return rv_raise(-EINVAL);
                lines[n_lines] = (struct line){ p, (size_t)(newline - p) };
                p = newline + 1;
        }
        return n_lines;
}

static bool is_line(const struct line *line, const char *begins_with)
{
        size_t n = strlen(begins_with);

        return line->n >= n && memcmp(line->text, begins_with, n) == 0;
}

/* Decimal, as it would be written. */
static bool read_size(const struct line *line, uint64_t *ret)
{
        uint64_t value = 0;

        if (line->n == 0 || line->n > 18 || (line->text[0] == '0' && line->n > 1))
                return false;
        for (size_t i = 0; i < line->n; i++) {
                if (line->text[i] < '0' || line->text[i] > '9')
                        return false;
                value = value * 10 + (uint64_t)(line->text[i] - '0');
        }
        *ret = value;
        return true;
}

/* 1 if it is one of the log's; 0 of another name; -EINVAL. */
static int read_signature(const struct line *line, const char *log_id, struct rv_checkpoint_signature *ret)
{
        uint8_t bytes[4 + RV_CHECKPOINT_SIGNATURE_BYTES];
        const size_t prefix = sizeof(DASH) - 1 + ORIGIN_BYTES + 1;
        char name[RV_LOG_ID_SIZE];

        if (!is_line(line, DASH) || !memchr(line->text + sizeof(DASH) - 1, ' ', line->n - (sizeof(DASH) - 1)))
                return rv_raise(-EINVAL);
        if (!read_origin(line->text + sizeof(DASH) - 1, line->n - (sizeof(DASH) - 1), name) ||
                strcmp(name, log_id) != 0 || line->n <= prefix || line->text[prefix - 1] != ' ')
                return 0;
        if (rv_base64_read(line->text + prefix, line->n - prefix, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes))
                return rv_raise(-EINVAL);
        memcpy(ret->key_id, bytes, 4);
        memcpy(ret->bytes, bytes + 4, sizeof(ret->bytes));
        return 1;
}

int rv_checkpoint_read(const char *text, size_t n, struct rv_checkpoint *ret)
{
        struct line lines[LINES_MAX];
        struct rv_checkpoint c = { 0 };
        int n_lines, at = 3;

        if (n > RV_CHECKPOINT_BYTES_MAX)
                return rv_raise(-EINVAL);
        n_lines = split(text, n, lines);
        if (n_lines < 5 || lines[0].n != ORIGIN_BYTES || !read_origin(lines[0].text, lines[0].n, c.log_id) ||
            !read_size(&lines[1], &c.size) ||
            rv_base64_read(lines[2].text, lines[2].n, c.root, sizeof(c.root)) != (ssize_t)sizeof(c.root))
                return rv_raise(-EINVAL);
        if (is_line(&lines[at], NEXT_KEY)) {
                const size_t prefix = sizeof(NEXT_KEY) - 1;

                if (rv_checkpoint_key_read(lines[at].text + prefix, lines[at].n - prefix, &c.next_key) < 0 ||
                    strcmp(c.next_key.log_id, c.log_id) != 0)
                        return rv_raise(-EINVAL);
                c.has_next_key = true;
                at++;
        }
        if (lines[at++].n != 0 || at == n_lines)
                return rv_raise(-EINVAL);
        for (; at < n_lines; at++) {
                struct rv_checkpoint_signature signature;
                int r = read_signature(&lines[at], c.log_id, &signature);

                if (r < 0 || (r > 0 && c.n_signatures == RV_CHECKPOINT_SIGNATURES_MAX))
                        return rv_raise(-EINVAL);
                if (r > 0)
                        c.signatures[c.n_signatures++] = signature;
        }
        *ret = c;
        return 0;
}
