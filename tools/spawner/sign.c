#include "sign.h"

#include "base/fd.h"
#include "base/test_point.h"
#include "base/text.h"
#include "sign_memory.h"

#include <stdio.h>
#include <string.h>

void signer_init(struct signer *s, const struct rv_config *config, const char *key_file)
{
        *s = (struct signer){ .config = config, .key_file = key_file, .dir_fd = -EBADF };
}

void signer_forget(struct signer *s)
{
        rv_ed25519_key_free(s->key.key);
        rv_ed25519_key_free(s->next.key);
        s->key = s->next = (struct signer_key){ 0 };
}

void signer_fini(struct signer *s)
{
        signer_forget(s);
        s->dir_fd = rv_close(s->dir_fd);
}

static void answer(struct rv_sign_answer *ret, enum rv_sign_code code, const struct rv_error *err)
{
        ret->code = code;
        rv_text_copy(ret->text, sizeof(ret->text), err->message);
}

/* ---- Which key ---- */

static int explain_missing(const struct signer *s, struct rv_sign_answer *ret)
{
        struct rv_error err = { 0 };

        if (ret->size || signer_was_there(s)) {
                rv_error_set(&err, -ENOKEY, "%s: the signing key is missing, although there was one (%s.pub); restore it from a copy. If it is lost, move all files away whose names begin so: the next key is then a new one, and `reeve audit verify` wants both verifier keys, `--key` twice; or move audit/ away too and begin a new log",
                             s->path, s->path);
                answer(ret, RV_SIGN_UNUSABLE, &err);
        } else {
                rv_error_set(&err, -ENOKEY, "%s: there is no signing key; make one with `reeve audit keygen`", s->path);
                answer(ret, RV_SIGN_NO_KEY, &err);
        }
        return -ENOKEY;
}

/* The key is loaded, made if it may be; or the answer says why not, and the return is negative. */
static int need_key(struct signer *s, bool may_make, struct rv_sign_answer *ret)
{
        struct rv_error err = { 0 };
        int r;

        r = signer_load(s, &err);
        if (r == 0 && (!may_make || ret->size || signer_was_there(s)))
                return explain_missing(s, ret);
        if (r == 0)
                r = signer_make(s, false, &err);
        if (r < 0)
                answer(ret, RV_SIGN_UNUSABLE, &err);
        return r;
}

static void tell_keys(const struct signer *s, struct rv_sign_answer *ret)
{
        memcpy(ret->key, rv_ed25519_key_public(s->key.key), sizeof(ret->key));
        ret->has_next_key = s->next.key != NULL;
        if (ret->has_next_key)
                memcpy(ret->next_key, rv_ed25519_key_public(s->next.key), sizeof(ret->next_key));
}

static void tell_memory(const struct signer_memory *m, struct rv_sign_answer *ret)
{
        ret->size = m->size;
        memcpy(ret->root, m->root, sizeof(ret->root));
}

/* ---- Signing ---- */

/* Does the log that is shown continue the one that was signed last? */
static bool is_continued(const struct rv_sign_request *q, const struct signer_memory *m, struct rv_merkle *ret_tree,
        struct rv_sign_answer *ret)
{
        struct rv_error err = { 0 };
        rv_merkle_hash root;

        if (q->edge.size != m->size) {
                ret->code = RV_SIGN_STALE;
                return false;
        }
        rv_merkle_root(&q->edge, root);
        *ret_tree = q->edge;
        if (memcmp(root, m->root, sizeof(root)) == 0 && rv_merkle_grow(ret_tree, &q->growth) == 0 && ret_tree->size > 0)
                return true;
        rv_error_set(&err, -EPERM, "the signer refuses: the log does not continue the %llu records that it signed; see `reeve audit verify`",
                     (unsigned long long)m->size);
        answer(ret, RV_SIGN_REFUSED, &err);
        return false;
}

static int sign(const struct signer *s, const char *log_id, struct rv_sign_answer *ret)
{
        struct rv_checkpoint c = { .size = ret->size, .has_next_key = s->next.key != NULL };
        int r;

        memcpy(c.log_id, log_id, sizeof(c.log_id));
        memcpy(c.root, ret->root, sizeof(c.root));
        if (c.has_next_key) {
                memcpy(c.next_key.log_id, log_id, sizeof(c.log_id));
                memcpy(c.next_key.public_key, ret->next_key, sizeof(ret->next_key));
        }
        r = rv_checkpoint_sign_with(&c, s->key.key);
        if (r == 0 && c.has_next_key)
                r = rv_checkpoint_sign_with(&c, s->next.key);
        if (r < 0)
                return rv_trace(r);
        ret->n_signatures = c.n_signatures;
        memcpy(ret->signatures, c.signatures, sizeof(ret->signatures));
        return 0;
}

/* What is signed is remembered before the signature leaves. */
static void sign_growth(struct signer *s, const struct rv_sign_request *q, struct signer_memory *m,
        struct rv_sign_answer *ret)
{
        struct rv_error err = { 0 };
        struct rv_merkle tree;
        rv_merkle_hash root;
        int r = 0;

        if (!is_continued(q, m, &tree, ret))
                return;
        if (q->kind == RV_SIGN_NEXT_KEY && !s->next.key)
                r = signer_make(s, true, &err);
        rv_test_point("rotate-new");
        rv_merkle_root(&tree, root);
        if (r == 0)
                r = signer_memory_set(s, m, tree.size, root, &err);
        if (r < 0)
                return answer(ret, RV_SIGN_UNUSABLE, &err);
        tell_memory(m, ret);
        tell_keys(s, ret);
        rv_test_point("seal-signed");
        r = sign(s, q->log_id, ret);
        if (r < 0) {
                signer_fail(s, &err, r, "", "cannot sign");
                answer(ret, RV_SIGN_UNUSABLE, &err);
        }
}

/* ---- Changing keys ---- */

static void settle(struct signer *s, const struct rv_sign_request *q, struct rv_sign_answer *ret)
{
        struct rv_error err = { 0 };
        const struct signer_key *named = s->next.key ? &s->next : &s->key;
        int r = 0;

        /* Another has done it, or it was interrupted behind its last step. */
        if (memcmp(rv_ed25519_key_public(named->key), q->next_key, sizeof(q->next_key)) != 0) {
                rv_error_set(&err, -EINVAL, "%s: that key is not the one that was to take over; run `reeve audit rotate` again", s->path);
                return answer(ret, RV_SIGN_REFUSED, &err);
        }
        if (s->next.key)
                r = signer_change(s, q->log_id, q->flags & RV_SIGN_DESTROY, &err);
        if (r < 0)
                answer(ret, RV_SIGN_UNUSABLE, &err);
        else
                tell_keys(s, ret);
}

static void answer_locked(struct signer *s, const struct rv_sign_request *q, struct signer_memory *m,
        struct rv_sign_answer *ret)
{
        bool may_make = q->kind == RV_SIGN_MAKE_KEY || (s->is_own_place && q->kind != RV_SIGN_SETTLE);
        struct rv_error err = { 0 };

        if (q->kind == RV_SIGN_MAKE_KEY && signer_load(s, &err) != 0) {
                if (!err.code)
                        rv_error_set(&err, -EEXIST, "%s: is there already, and no key is written over; `reeve audit rotate` changes keys", s->path);
                return answer(ret, err.code == -EEXIST ? RV_SIGN_THERE : RV_SIGN_UNUSABLE, &err);
        }
        if (need_key(s, may_make, ret) < 0)
                return;
        if (signer_publish(s, q->log_id, &err) < 0)
                return answer(ret, RV_SIGN_UNUSABLE, &err);
        tell_keys(s, ret);
        if (q->kind == RV_SIGN_CHECKPOINT || q->kind == RV_SIGN_NEXT_KEY)
                sign_growth(s, q, m, ret);
        else if (q->kind == RV_SIGN_SETTLE)
                settle(s, q, ret);
}

/* ---- Requests ---- */

/* Makes nothing and takes no lock. */
static void look(struct signer *s, const struct rv_sign_request *q, struct rv_sign_answer *ret)
{
        struct signer_memory m;
        struct rv_error err = { 0 };

        if (signer_memory_look(s, q->log_id, &m, &err) < 0)
                return answer(ret, RV_SIGN_UNUSABLE, &err);
        tell_memory(&m, ret);
        if (need_key(s, false, ret) >= 0)
                tell_keys(s, ret);
}

static void work(struct signer *s, const struct rv_sign_request *q, struct rv_sign_answer *ret)
{
        struct signer_memory m;
        struct rv_error err = { 0 };

        if (signer_open(s, &err) < 0)
                return answer(ret, RV_SIGN_UNUSABLE, &err);
        if (q->flags & RV_SIGN_LOOK_ONLY)
                return look(s, q, ret);
        if (signer_memory_open(s, q->log_id, &m, &err) < 0)
                return answer(ret, RV_SIGN_UNUSABLE, &err);
        tell_memory(&m, ret);
        answer_locked(s, q, &m, ret);
        signer_memory_close(&m);
}

void signer_answer(struct signer *s, const struct rv_sign_request *q, struct rv_sign_answer *ret)
{
        size_t n = strlen(s->config->state_dir);

        *ret = (struct rv_sign_answer){ .code = RV_SIGN_OK };
        work(s, q, ret);
        ret->is_beside_state = strncmp(s->path, s->config->state_dir, n) == 0 && s->path[n] == '/';
        rv_text_copy(ret->path, sizeof(ret->path), s->path);
}
