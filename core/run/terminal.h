/*
 * terminal.h - program output made harmless for a terminal
 *
 * What a program prints may hold sequences that move the cursor, rename the window or hide text. The filter
 * shows each control character instead of passing it on: C0 as ^X (ESC is ^[), DEL as ^?, C1 (U+0080 to
 * U+009F, which many terminals obey like ESC sequences) as its number, <9B>. Tab and newline pass, unless a
 * single line is made. Ill-formed UTF-8 becomes U+FFFD, one for each maximal subpart, since a terminal's own
 * idea of a broken character may swallow what follows. Zero-initialised is ready; the state is a few bytes
 * and needs no release. One thread at a time.
 */
#pragma once

#include "base/buf.h"
#include "base/utf8.h"

struct rv_terminal {
        struct rv_utf8 decoder;   /* a character begun in an earlier piece */
        bool is_single_line;      /* tab and newline are shown too */
};

/**
 * rv_terminal_feed() - filter the next @n bytes of a stream
 * @out: what may be printed is added
 *
 * A character that is not complete yet is held back until its rest, or the end, comes.
 *
 * Context:   any
 * Ownership: borrows @data
 * Return:    0 or -ENOMEM
 */
int rv_terminal_feed(struct rv_terminal *t, const void *data, size_t n, struct rv_buf *out);

/** rv_terminal_finish() - the stream has ended: show a character that was begun as U+FFFD. Context: any. Ownership: none. Return: 0 or -ENOMEM */
int rv_terminal_finish(struct rv_terminal *t, struct rv_buf *out);

/** rv_terminal_put_line() - filter a whole text into one line of @out, without a newline. Context: any. Ownership: borrows @text. Return: 0 or -ENOMEM */
int rv_terminal_put_line(const char *text, struct rv_buf *out);
