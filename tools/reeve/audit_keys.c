#include "audit_keys.h"

#include "base/base64.h"
#include "base/fd.h"

#include <fcntl.h>
#include <string.h>

static int parse_key(const struct rv_buf *text, struct rv_checkpoint_key *ret)
{
        return rv_checkpoint_key_read(text->data ? text->data : "", text->size, ret);
}

static int read_key(int dir_fd, const char *name, struct rv_checkpoint_key *ret)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        int r = rv_read_file_at(dir_fd, name, RV_CHECKPOINT_VERIFIER_SIZE, &text);

        return r < 0 ? r : parse_key(&text, ret);
}

int audit_key_add(struct audit_keys *keys, const char *text, struct rv_error *err)
{
        struct rv_checkpoint_key *key = &keys->keys[keys->n];
        int r;

        if (keys->n == AUDIT_KEYS_MAX)
                return rv_error_set(err, -E2BIG, "more than %d keys", AUDIT_KEYS_MAX);
        if (rv_checkpoint_key_read(text, strlen(text), key) == 0) {
                keys->n++;
                return 0;
        }
        r = read_key(AT_FDCWD, text, key);
        if (r == -EINVAL || r == -EFBIG)
                return rv_error_set(err, -EINVAL, "--key %s: it holds no verifier key (reeve/LOG_ID+HASH+KEY)", text);
        if (r < 0)
                return rv_error_set(err, r, "--key %s: neither a verifier key nor a file that can be read: %s", text, strerror(-r));
        keys->n++;
        return 0;
}

int audit_key_beside(struct audit_keys *keys, const struct audit_place *place, struct rv_error *err)
{
        const char *name = place->key_pub ? place->key_pub : place->state_fd >= 0 ? "keys/ed25519.pub" : "../keys/ed25519.pub";
        int r = place->key_status;

        if (!place->key_pub)
                r = read_key(place->state_fd >= 0 ? place->state_fd : place->audit_fd, name, &keys->keys[0]);
        else if (r == 0)
                r = parse_key(&place->key_text, &keys->keys[0]);
        if (r == -ENOENT || r == -ENOTDIR || (r == -EACCES && !place->key_pub))
                return 0;
        if (r < 0)
                return rv_error_set(err, r, "%s: the log's own key %s cannot be read: %s; name the key with --key", place->path, name, strerror(-r));
        keys->n = 1;
        return 1;
}

/* Sizes have 18 digits at most, as in a checkpoint. */
static bool read_size_and_root(const char *text, struct rv_verify_expect *ret)
{
        size_t n = strspn(text, "0123456789");
        const char *root = text + n + 1;

        if (n == 0 || n > 18 || text[n] != ':')
                return false;
        ret->size = strtoull(text, NULL, 10);
        if (strlen(root) != 2 * sizeof(ret->root))
                return rv_base64_read(root, strlen(root), ret->root, sizeof(ret->root)) == (ssize_t)sizeof(ret->root);
        if (strspn(root, "0123456789abcdefABCDEF") != 2 * sizeof(ret->root))
                return false;
        for (size_t i = 0; i < sizeof(ret->root); i++) {
                char pair[3] = { root[2 * i], root[2 * i + 1], 0 };

                ret->root[i] = (uint8_t)strtoul(pair, NULL, 16);
        }
        return true;
}

int audit_expect_read(const char *text, struct rv_verify_expect *ret, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf note = { 0 };
        int r;

        *ret = (struct rv_verify_expect){ 0 };
        if (read_size_and_root(text, ret))
                return 0;
        r = rv_read_file_at(AT_FDCWD, text, RV_CHECKPOINT_BYTES_MAX, &note);
        if (r < 0 && r != -EFBIG && r != -EINVAL)
                return rv_error_set(err, r, "--expect %s: neither SIZE:ROOT nor a file that can be read: %s", text, strerror(-r));
        if (r < 0 || rv_checkpoint_read(note.data ? note.data : "", note.size, &ret->note) < 0)
                return rv_error_set(err, -EINVAL, "--expect %s: it holds no checkpoint", text);
        ret->is_note = true;
        ret->size = ret->note.size;
        memcpy(ret->root, ret->note.root, sizeof(ret->root));
        return 0;
}
