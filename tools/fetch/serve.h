/*
 * serve.h - the loop of reeve-fetch: requests in, transfers, answers out
 *
 * One thread, one process, one call. Memory is bounded: at most RV_FETCH_PARALLEL transfers, and a request waits
 * until what those and the answers still to be written may hold leaves room for it.
 */
#pragma once

/**
 * serve() - answer what comes on standard input until it ends
 * @dir_fd: directory for files, or negative
 *
 * Context:   blocks until then
 * Ownership: borrows
 * Return:    the exit status: 0; 1 reeve's own error; 2 what came is no request
 */
int serve(int dir_fd);
