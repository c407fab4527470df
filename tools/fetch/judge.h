/*
 * judge.h - may the helper connect there, on behalf of a request that goes to the public Internet alone?
 *
 * The rules are those of the gate (egress/address.h) without a configuration's. The host's own addresses are looked up
 * each time, since interfaces come and go. One thread.
 */
#pragma once

#include "egress/address.h"

/**
 * judge_is_public() - is it an address of the public Internet, and not of this host?
 * @ret_why: if not: the address and the reason, @size bytes; else untouched
 *
 * Context:   any
 * Ownership: borrows
 * Return:    whether it is; false as well if the host's own addresses cannot be had
 */
bool judge_is_public(const struct rv_address *address, char *ret_why, size_t size);
