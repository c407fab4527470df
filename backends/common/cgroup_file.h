/*
 * cgroup_file.h - the files of a control group: short texts, written and read whole
 *
 * Single thread; nothing owned.
 */
#pragma once

#include "base/rv.h"

/** rv_cgroup_write() - write @text to @file below @dir_fd. Context: may block. Ownership: borrows. Return: 0 or -errno */
int rv_cgroup_write(int dir_fd, const char *file, const char *text);
/** rv_cgroup_read() - at most @size - 1 bytes of @file, ended. Context: may block. Ownership: borrows. Return: 0 or -errno */
int rv_cgroup_read(int dir_fd, const char *file, char *ret, size_t size);
/** rv_cgroup_read_number() - the number that @file begins with; "max" is UINT64_MAX. Context: may block. Ownership: borrows. Return: it; 0 if it cannot be read */
uint64_t rv_cgroup_read_number(int dir_fd, const char *file);
/** rv_cgroup_read_keyed() - the value behind @key in a file of "key value" lines. Context: may block. Ownership: borrows. Return: it; 0 if it cannot be read */
uint64_t rv_cgroup_read_keyed(int dir_fd, const char *file, const char *key);
/** rv_cgroup_hold() - tell by a lock, which ends with its holder, that the directory @dir_fd is in use. Context: may block 5 ms. Ownership: borrows. Return: none */
void rv_cgroup_hold(int dir_fd);
/** rv_cgroup_is_held() - does another descriptor hold it, or may one? Context: any. Ownership: borrows. Return: as named */
bool rv_cgroup_is_held(int dir_fd);
/** rv_cgroup_has_word() - is @word in a list whose words @separator parts? Context: any. Ownership: borrows. Return: as named */
bool rv_cgroup_has_word(const char *list, const char *word, char separator);
