/*
 * json_stream.h - JSON written piece by piece, without a copy of it in memory
 *
 * An outcome holds up to some megabytes of output; it is written through one small buffer to a sink (a file
 * descriptor, a hash) instead of being built as a tree first. The stream lives on its writer's stack: init,
 * write, finish. An error of the sink is sticky and told by finish. Strings are UTF-8 as they are, except
 * that `"`, `\` and every control character (C0, DEL and C1, which terminals obey) is escaped; ill-formed
 * UTF-8 becomes U+FFFD, so that what is written is always JSON. One thread at a time.
 */
#pragma once

#include "base/json.h"

/** A sink takes @n bytes. Return: 0 or -errno, after which it is not called again. */
typedef int (*rv_sink_fn)(void *ctx, const void *data, size_t n);

struct rv_json_stream {
        rv_sink_fn sink;
        void *ctx;
        int error;
        bool is_first;      /* the next member or element needs no comma */
        size_t size;
        char buffer[8192];
};

/** rv_json_stream_init() - begin. Context: any. Ownership: borrows @ctx until finish. Return: none */
void rv_json_stream_init(struct rv_json_stream *w, rv_sink_fn sink, void *ctx);
/** rv_json_stream_finish() - hand the rest to the sink. Context: as the sink. Ownership: none. Return: 0 or the sink's first error */
int rv_json_stream_finish(struct rv_json_stream *w);

/** rv_json_stream_raw() - bytes that are JSON already. Context: as the sink. Ownership: borrows. Return: none */
void rv_json_stream_raw(struct rv_json_stream *w, const char *data, size_t n);
/** rv_json_stream_begin() - `{` or `[`. Context: as the sink. Ownership: none. Return: none */
void rv_json_stream_begin(struct rv_json_stream *w, char bracket);
/** rv_json_stream_end() - `}` or `]`. Context: as the sink. Ownership: none. Return: none */
void rv_json_stream_end(struct rv_json_stream *w, char bracket);
/** rv_json_stream_key() - the comma where one is due, and a member's name, which needs no escapes. Context: as the sink. Ownership: borrows. Return: none */
void rv_json_stream_key(struct rv_json_stream *w, const char *key);
/** rv_json_stream_text() - a string value of @n bytes. Context: as the sink. Ownership: borrows. Return: none */
void rv_json_stream_text(struct rv_json_stream *w, const char *text, size_t n);
/** rv_json_stream_well_formed() - the same for text that is known to be well-formed UTF-8. Context: as the sink. Ownership: borrows. Return: none */
void rv_json_stream_well_formed(struct rv_json_stream *w, const char *text, size_t n);
/** rv_json_stream_string() - a C string, or null for NULL. Context: as the sink. Ownership: borrows. Return: none */
void rv_json_stream_string(struct rv_json_stream *w, const char *text);
/** rv_json_stream_integer() - a number. Context: as the sink. Ownership: none. Return: none */
void rv_json_stream_integer(struct rv_json_stream *w, uint64_t value);
/** rv_json_stream_ms() - microseconds as milliseconds with at most three decimals and no exponent. Context: as the sink. Ownership: none. Return: none */
void rv_json_stream_ms(struct rv_json_stream *w, uint64_t us);
/** rv_json_stream_bool() - true or false. Context: as the sink. Ownership: none. Return: none */
void rv_json_stream_bool(struct rv_json_stream *w, bool value);
/** rv_json_stream_value() - a tree, compactly, members in their own order; null for NULL. Context: as the sink; recurses as deep as @value. Ownership: borrows. Return: none */
void rv_json_stream_value(struct rv_json_stream *w, const json_t *value);

#define RV_JSON_ESCAPE_SIZE 8

/** rv_json_escape() - how a string holds @code_point (a scalar value): itself in UTF-8, or an escape. Context: any. Ownership: the caller's memory; no NUL. Return: bytes written */
size_t rv_json_escape(uint32_t code_point, char ret[RV_JSON_ESCAPE_SIZE]);

/** rv_json_plain_run() - bytes at the front of well-formed @text that a string holds as they are. Context: any. Ownership: borrows. Return: 0 to @n */
size_t rv_json_plain_run(const char *text, size_t n);
