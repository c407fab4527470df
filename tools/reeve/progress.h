/*
 * progress.h - one line on a terminal's standard error that says what is being done, and goes away
 *
 * Nothing is written where standard error is no terminal. Zero-initialised is off. One thread.
 */
#pragma once

#include <stdbool.h>

struct progress {
        bool is_on, is_shown;
};

/** progress_init() - is there anybody to see it? Context: any. Ownership: none. Return: none */
void progress_init(struct progress *p);
/** progress_show() - in place of what is shown. Context: may block on the terminal. Ownership: borrows. Return: none */
void progress_show(struct progress *p, const char *text);
/** progress_clear() - nothing is shown any more. Context: may block on the terminal. Ownership: none. Return: none */
void progress_clear(struct progress *p);
