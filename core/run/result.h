/*
 * result.h - the value a program returned in its result file
 *
 * The file is the program's: hostile bytes behind a descriptor that a backend opened after every process of
 * the run was gone. Reading it never fails a run: what is not usable leaves no value and a note that says
 * why. A result lives with its outcome; zero-initialised is "none". One thread at a time.
 */
#pragma once

#include "base/rv.h"

#define RV_RESULT_BYTES_MAX (1u << 20)
#define RV_RESULT_DEPTH_MAX 64
#define RV_RESULT_NOTE_SIZE 160

struct rv_result {
        char *text;    /* compact JSON (see result_json.h), or NULL: none */
        size_t size;
        char note[RV_RESULT_NOTE_SIZE];   /* why there is none although a file was there; else "" */
};

/**
 * rv_result_read() - read the value
 * @fd:   the file, opened for reading, its position of no matter; or negative: there is none
 * @note: what the backend noted (why it did not open the file), or NULL; used if @fd is negative
 *
 * Refused with a note: what is no regular file, one that has a second name (a hard link), more than 1 MiB,
 * and all that rv_result_json_compact() refuses, at a depth of 64.
 *
 * Context:   any; may block on a slow disk
 * Ownership: borrows @fd; rv_result_fini() releases @ret's text
 * Return:    none
 */
void rv_result_read(int fd, const char *note, struct rv_result *ret);

/** rv_result_fini() - release; it is "none" again. Context: any. Ownership: takes the text. Return: none */
void rv_result_fini(struct rv_result *r);
