/*
 * frames.h - the stream in which the compile driver hands over byte code
 *
 * A frame is "RVPC", the sizes of path and data as 32-bit little-endian numbers, the path, the data. Behind the last
 * stands "RVPE", the number of frames and a zero. The driver runs in a sandbox over packages' code: not a byte of it is
 * trusted. One thread.
 */
#pragma once

#include "members.h"
#include "name.h"

#include <stdio.h>

#define FRAMES_MAX 200000u
#define FRAME_BYTES_MAX ((uint32_t)64 << 20)

/** frames_read() - show each frame to @v as a member, data in blocks of which the first has all or at least 16 bytes. Context: blocks on @in. Ownership: borrows. Return: 0; UNPACK_E_FAULT; -errno */
int frames_read(FILE *in, const struct visitor *v, struct fault *f);

/** frames_source() - the source that byte code of this path is of: lib/pythonX.Y/site-packages/…/__pycache__/NAME.TAG.pyc has …/NAME.py. Context: any. Ownership: the caller's memory, at least @n + 1 bytes. Return: is it such a path? */
bool frames_source(const char *path, size_t n, char *ret);

/** frames_is_code() - does byte code begin as what is never compared with its source does (PEP 552, unchecked hash)? Context: any. Ownership: borrows. Return: as named */
bool frames_is_code(const void *data, size_t n);
