/*
 * closure.h - what a resolver's run answered: every package that a request comes to
 *
 * A driver (drivers.h) runs uv, pip or npm inside a sandbox and prints one JSON document, the closure. It is a stranger's
 * text, and what stands in it was written by strangers too: packages name other packages, places to fetch them from and
 * paths to put them at. Here it is bounded, and made a list of packages of which each comes from the registry, is named
 * as it is asked for, and lies where it belongs. What npm would not install on this platform is left out.
 *
 *   driver -> rv_closure_read() -> metadata and artifacts -> rv_closure_paths() -> lock
 *
 * Plain functions on JSON values; any thread.
 */
#pragma once

#include "base/json.h"
#include "request/request.h"

#define RV_CLOSURE_E_REFUSED 1     /* one of its packages must not be installed */
#define RV_CLOSURE_E_FAILED 2      /* the tool found no packages, or not for this platform */
#define RV_CLOSURE_E_TOO_LARGE 3   /* more packages than are judged */

#define RV_CLOSURE_BYTES_MAX (16u << 20)
#define RV_CLOSURE_PACKAGES_MAX 2000
#define RV_CLOSURE_TEXT_MAX 4096   /* bytes of what the tool said */

/**
 * rv_closure_read() - read a closure
 * @text:      @n bytes as the driver printed them
 * @requested: what was asked for; each has to be there, in a version that was asked for
 * @ret:       a new value, also on a positive return; untouched on a negative one
 * @err:       set on a negative return
 *
 * On 0 *@ret is {"tool":{"name","version" ("" of uv)},"runtime":{"tag","version","interpreter"},"packages":[…],"not_installed":[…]},
 * packages sorted by name, version and file, each with "name" (canonical), "version", "direct", "requested" (the texts
 * asked for, joined by ", ") and "extras", and of Python
 *     "file" (a wheel of that name and version), "url" (http or https without credentials; "": a wheel that reeve built),
 *     where they were told "sha256", "size_bytes", "published_at"
 * and of JavaScript
 *     "integrity" (one sha512), "at" (sorted places, such as "node_modules/a"), "install_script", "optional", "license"
 *     where it is told, "requires" (sorted names) and "needs" (the same as positions in the list).
 * "not_installed" holds {"name","version","at"} of what is for other platforms.
 *
 * On RV_CLOSURE_E_REFUSED: {"code":"package_install_failed","cause":"unsafe_archive"|"name_mismatch","package","text"}.
 * On RV_CLOSURE_E_FAILED: {"code" (the tool's, or null),"exit","package","text","tool","runtime"}; code "EBADPLATFORM" also
 * for a package that the tool took and that is for another platform. On RV_CLOSURE_E_TOO_LARGE: {"n_packages"}. Texts
 * have no control characters; those of packages' own are quoted.
 *
 * Whether a pre-release may be chosen, and Python's rules for `>` and `<` next to a pre- or post-release, are the tool's
 * business: a version that the order alone lets in has been asked for.
 *
 * Context:   any thread; time n log n in what was read
 * Ownership: borrows; *@ret is the caller's
 * Return:    0; RV_CLOSURE_E_*; -EINVAL it is no closure; -EMSGSIZE longer than RV_CLOSURE_BYTES_MAX; -ENOMEM
 */
int rv_closure_read(enum rv_language language, const char *text, size_t n, const struct rv_package *requested,
        size_t n_requested, json_t **ret, struct rv_error *err);
