/*
 * npm_key.h - names and places as a package-lock.json writes them
 *
 * A *key* is a place below the project: `node_modules/a`, `node_modules/@s/b/node_modules/a`. Plain functions on texts
 * that were read from a stranger; any thread.
 */
#pragma once

#include "base/rv.h"

#define RV_NPM_KEY_SIZE_MAX 1024   /* bytes */

/** rv_npm_name_is_valid() - may a package of npm's have this name? Also those of old, with capitals. Context: any. Ownership: borrows. Return: as named */
bool rv_npm_name_is_valid(const char *name, size_t n);

/** rv_npm_key_is_valid() - is it a place for a package, made of valid names and `node_modules` only? Context: any. Ownership: borrows. Return: as named */
bool rv_npm_key_is_valid(const char *key);

/** rv_npm_key_name() - the name by which the package at a valid key is found. Context: any. Ownership: within @key. Return: the name */
const char *rv_npm_key_name(const char *key);

/**
 * rv_npm_key_parent() - the size of the key of the package within which a valid key's package lies
 *
 * Context:   any
 * Ownership: borrows
 * Return:    bytes of @key; 0: it lies in the project itself
 */
size_t rv_npm_key_parent(const char *key, size_t n);

/**
 * rv_npm_spec_is_plain() - does a dependency's text ask for a version from the registry?
 *
 * Ranges, tags and aliases (`npm:name@range`) do; URLs, repositories, paths, workspaces do not.
 *
 * Context:   any
 * Ownership: borrows
 * Return:    as named
 */
bool rv_npm_spec_is_plain(const char *spec);
