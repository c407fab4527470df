/*
 * scripts.h - the commands that a wheel asks for in entry_points.txt, and the programs that are written for them
 *
 * Sections console_scripts and gui_scripts alone; the rest of the file is not looked at. Zeroed is empty; it owns
 * copies. One thread.
 */
#pragma once

#include "base/buf.h"
#include "fault.h"

#define SCRIPTS_MAX 1000u

struct script {
        char *name, *module, *attribute;
};

struct scripts {
        struct script *all;
        size_t n;
};

/** scripts_read() - read entry_points.txt. Context: any. Ownership: copies; scripts_fini() releases, also after a fault. Return: 0; UNPACK_E_FAULT; -ENOMEM */
int scripts_read(const char *text, size_t n, struct scripts *ret, struct fault *f);

/** scripts_find() - is there a script of this name? Context: any. Ownership: borrowed. Return: it; NULL */
const struct script *scripts_find(const struct scripts *s, const char *name, size_t n);

/** scripts_write() - the program of one, as installers write it, for @interpreter. Context: any. Ownership: adds to @out. Return: 0; -ENOMEM */
int scripts_write(const struct script *s, const char *interpreter, struct rv_buf *out);

/** scripts_judge_name() - may a command be called so: one part of a path, and not as the interpreter is? Context: any. Ownership: borrows. Return: 0; UNPACK_E_FAULT */
int scripts_judge_name(const char *name, size_t n, struct fault *f);

/** scripts_fini() - release; it is empty again. Context: any. Ownership: takes the content. Return: none */
void scripts_fini(struct scripts *s);
