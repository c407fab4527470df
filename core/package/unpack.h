/*
 * unpack.h - packages' archives, read by a process of their own: the protocol of reeve-unpack, and its client
 *
 * What a registry serves is hostile until it has been looked at, and looking at it is what an attacker waits for. No
 * process of reeve's that holds anything worth having links libarchive; the helper `reeve-unpack` (tools/unpack) does,
 * without privilege, network or sight of any file but those below the descriptors that it is started with:
 *
 *     reeve-unpack scan|build|compiled [--uid N]      as root it becomes N, or nobody
 *
 *     0  the job: one JSON document of at most 16 MiB, then end of file      3  directory of the artifacts: read
 *     1  the result: one JSON document                                       4  staging directory: written (build, compiled)
 *     2  messages                                                            5  the layer's tree: read (compiled)
 *
 * Status 0: there is a result, which may be a fault. 2: the job is at fault. 1, or a signal: the helper failed.
 *
 * scan:  what artifacts are, and whether they may be used. `file` is a name in the directory, `file_name` what the
 *        registry calls it.
 *     {"language": "python"|"javascript", "artifacts": [{"file", "name", "version", "file_name"}]}
 *     -> {"artifacts": [one for each, in their order:
 *          {"file", "sha256", "sha512", "size_bytes", "name", "version", "license", "requires": [{"name", "marker"}],
 *           "requires_python", "install_script", "n_files", "unpacked_bytes"}
 *          or {"file", "sha256", "sha512", "size_bytes", "fault": {"cause", "text"}}]}
 *        `name` and `version` are as the artifact spells them. Causes: unsafe_archive, name_mismatch; build_failed: it
 *        could not be read at all, and the hashes may be "".
 * build: a layer out of the artifacts of a lock; the staging directory is empty before.
 *     {"language", "runtime": {"version", "interpreter"} (of python), "packages": [{"file", "name", "version", "sha256",
 *      "at" (of javascript)}]}
 *     -> tree/ and manifest.json in the staging directory, and {"n_files", "bytes", "manifest_sha256"}
 *     or {"fault": {"cause", "text", "package"}}: what was made so far is worth nothing; cause also hash_mismatch
 * compiled: byte code of a layer. `file` is a stream of frames: "RVPC", u32 path_bytes, u32 data_bytes (little-endian),
 *        path, data; at the end "RVPE", u32 number of frames, u32 0. A path is lib/pythonX.Y/site-packages/…/__pycache__/
 *        NAME.TAG.pyc, whose NAME.py is in the tree, and the data byte code with an unchecked hash (PEP 552).
 *     {"file"}
 *     -> the same paths below the staging directory, manifest-compiled.json, and the result of build
 *
 * A manifest is canonical JSON: {"schema": "reeve.manifest/1", "entries": [{"path", "type": "file"|"link"|"directory",
 * "mode", "size", "sha256" (of a file), "target" (of a link)}]}, sorted by path, bytewise. Paths are below tree/ (of byte
 * code: below the staging directory, which is the same), modes numbers: 420 (0644) or 493 (0755) of a file, 493 of a
 * directory, 511 of a link; sizes: the bytes of a file or of a link's target, 0 of a directory. manifest-compiled.json has of directories only
 * those named __pycache__. Files, links and directories all have the time 1980-01-01 (UTC).
 *
 * The client starts a helper of its own. Any thread; see child.h for what has to hold.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

#define RV_UNPACK_JOB_BYTES_MAX ((size_t)16 << 20)
#define RV_UNPACK_RESULT_BYTES_MAX ((size_t)32 << 20)
#define RV_UNPACK_ARTIFACTS_MAX 2000u
#define RV_UNPACK_TEXT_MAX 1024u         /* bytes of a text in a result */

/** rv_unpack_find() - open the helper: beside this program in a build tree or an installation, else where it was installed. Context: any; with whatever privilege its place needs. Ownership: the descriptor is the caller's, close-on-exec. Return: 0; -errno */
int rv_unpack_find(int *ret_fd, struct rv_error *err);

/**
 * rv_unpack_scan() - have artifacts looked at
 * @helper_fd:   of rv_unpack_find()
 * @dir_fd:      where they lie
 * @job:         of scan, see above
 * @stop:        as in child.h; may be NULL
 * @stop:        as in child.h; may be NULL
 * @deadline_us: on rv_boot_us()'s clock
 * @ret:         the result, checked by rv_unpack_scan_check(); untouched on failure
 *
 * Context:   blocks until the deadline at most; see child.h
 * Ownership: borrows; *@ret is a new reference
 * Return:    0: each artifact is described, or has a fault; -ETIMEDOUT; -ECANCELED; -EPROTO the helper failed; -errno
 */
int rv_unpack_scan(int helper_fd, int dir_fd, const json_t *job, const _Atomic bool *stop, uint64_t deadline_us,
        json_t **ret, struct rv_error *err);

/**
 * rv_unpack_scan_check() - is a text what the helper may answer to a job? It has read hostile bytes, so it is not trusted
 * @ret: untouched on failure
 *
 * That an artifact is harmless is the helper's word and nobody else's; that a result has its form, its texts can be
 * shown and its numbers are in range holds after this whatever became of the helper.
 *
 * Context:   any
 * Ownership: borrows; *@ret is a new reference
 * Return:    0; -EPROTO; -ENOMEM
 */
int rv_unpack_scan_check(const json_t *job, const char *text, size_t n, json_t **ret, struct rv_error *err);
