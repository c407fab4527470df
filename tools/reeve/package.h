/*
 * package.h - what the commands of `reeve package` share
 *
 * A command is one file with one function `int package_NAME(int argc, char **argv)`; argv[0] is the command. It returns
 * the exit status.
 *
 *   package_place_open() -> store -> package_place_close()
 */
#pragma once

#include "reeve.h"

#include "base/config.h"
#include "store/packages.h"

/* The commands. Context: start of the process. Ownership: borrow. Return: the exit status. */
int package_resolve(int argc, char **argv);
int package_lock(int argc, char **argv);
int package_list(int argc, char **argv);
int package_prune(int argc, char **argv);
int package_verify(int argc, char **argv);

/* Where the packages of a configuration are kept. */
struct package_place {
        struct rv_config *config;
        struct rv_store *store;          /* NULL: nothing is kept so far */
        /* Removes a layer, which nobody uses; set if it was asked for. */
        int (*remove)(void *ctx, const char *digest, struct rv_error *err);
        void *ctx;                       /* of remove */
};

/**
 * package_place_open() - open the store of the configuration's state directory
 * @config:    as for rv_config_load()
 * @is_change: layers will be removed too
 *
 * As root the process becomes the owner of the state directory, if that is another, and stays so: nothing of a store is
 * parsed with privilege.
 *
 * Context:   start of a command, one thread
 * Ownership: release with package_place_close(), also after a failure
 * Return:    0; -errno: @err says what, why and what to do
 */
int package_place_open(const char *config, bool is_change, struct package_place *ret, struct rv_error *err);
/** package_place_close() - release. Context: any. Ownership: takes the content. Return: none */
void package_place_close(struct package_place *place);

/** package_digest() - the digest that a word names, "sha256:" before it or not. Context: any. Ownership: borrowed from @word. Return: it, or NULL: it names none */
const char *package_digest(const char *word);

#define PACKAGE_TEXT_SIZE 32
/** package_size_text() - a number of bytes for people. Context: any. Ownership: none. Return: @ret */
const char *package_size_text(uint64_t bytes, char ret[PACKAGE_TEXT_SIZE]);
/** package_age_text() - since a time, microseconds since 1970, for people. Context: any; reads the clock. Ownership: none. Return: @ret */
const char *package_age_text(uint64_t time_us, char ret[PACKAGE_TEXT_SIZE]);
