/*
 * sign_key.h - the files of the signer's keys: found, checked, made, changed
 *
 * Nothing that is not as it should be is used or written over: the error says what is wrong and how to mend it.
 * Called under the lock of the signer's memory, but for signer_open(). The spawner's one thread.
 */
#pragma once

#include "sign.h"

/** signer_open() - open the key's directory, unless it is open, and see that it is fit to hold a key. Context: spawner. Ownership: the signer's. Return: 0; -errno with @err */
int signer_open(struct signer *s, struct rv_error *err);

/** signer_load() - load the key and, if keys are being changed, the next one. Context: locked. Ownership: the signer's. Return: 1; 0 there is no key; -errno with @err */
int signer_load(struct signer *s, struct rv_error *err);

/** signer_was_there() - is there a trace of a key that is gone? Context: locked. Ownership: borrows. Return: as named */
bool signer_was_there(const struct signer *s);

/** signer_make() - make the key, or (@is_next) the one that takes over, from getrandom(), durably. Context: locked; there is none. Ownership: the signer's. Return: 0; -errno with @err */
int signer_make(struct signer *s, bool is_next, struct rv_error *err);

/** signer_publish() - see that FILE.pub is the key's. Context: locked, loaded. Ownership: borrows. Return: 0; -errno with @err */
int signer_publish(struct signer *s, const char *log_id, struct rv_error *err);

/**
 * signer_change() - the next key becomes the key
 * @is_destroying: the old one is wiped and not kept
 *
 * At no time is there no key. Interrupted, it is done again.
 *
 * Context:   locked, both loaded
 * Ownership: borrows
 * Return:    0; -errno with @err
 */
int signer_change(struct signer *s, const char *log_id, bool is_destroying, struct rv_error *err);

/** signer_sync_directory() - names of files are to survive a crash too. Context: any. Ownership: borrows. Return: 0; -errno with @err */
int signer_sync_directory(const struct signer *s, struct rv_error *err);
/** signer_fail() - "PATH[SUFFIX]: WHAT: the error's text". Context: any. Ownership: borrows. Return: @r */
int signer_fail(const struct signer *s, struct rv_error *err, int r, const char *suffix, const char *what);
/** signer_check_file() - a regular file of one name, of the signer's user, open to nobody else. Context: any. Ownership: borrows. Return: 0; -EPERM with @err */
int signer_check_file(const struct signer *s, int fd, const char *suffix, struct stat *ret, struct rv_error *err);
