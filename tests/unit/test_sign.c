/*
 * The signer: one root for one size, no smaller size, nothing that does not continue what was signed; keys and memory
 * of the wrong owner, mode or content; a write of the memory that was torn; keys changed, and the change interrupted
 * at every step; many signers at once.
 */
#include <setjmp.h>
#include <stdarg.h>

#include "base/fd.h"
#include "sign_memory.h"
#include "test_base_tmp.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define TMP(f) cmocka_unit_test_setup_teardown(f, tmp_make, tmp_remove)
#define LOG_ID "0123456789abcdef0123456789abcdef"
#define MEMORY "keys/ed25519." LOG_ID ".signed"

static struct rv_config *config;

static struct signer begin(void **state)
{
        char text[512];
        struct signer s;

        rv_config_free(config);
        config = NULL;
        snprintf(text, sizeof(text), "state_dir: %s\n", (const char *)*state);
        assert_int_equal(rv_config_parse(text, strlen(text), "/test.yaml", &config, NULL), 0);
        signer_init(&s, config, NULL);
        return s;
}

static void end(struct signer *s)
{
        signer_fini(s);
        rv_config_free(config);
        config = NULL;
}

/* A log of records 0, 1, 2…; @variant makes another one. */
static struct rv_merkle tree_of(uint64_t size, int variant)
{
        struct rv_merkle tree = { 0 };

        for (uint64_t i = 0; i < size; i++) {
                uint64_t record[2] = { i, (uint64_t)variant };
                rv_merkle_hash leaf;

                rv_merkle_leaf(record, sizeof(record), leaf);
                rv_merkle_push(&tree, leaf);
        }
        return tree;
}

static struct rv_sign_request request(uint32_t kind, uint64_t from, uint64_t to, int variant)
{
        struct rv_sign_request q = { .kind = kind, .log_id = LOG_ID, .edge = tree_of(from, variant) };

        rv_merkle_growth_begin(&q.growth, from);
        for (uint64_t i = from; i < to; i++) {
                uint64_t record[2] = { i, (uint64_t)variant };
                rv_merkle_hash leaf;

                rv_merkle_leaf(record, sizeof(record), leaf);
                rv_merkle_growth_push(&q.growth, leaf);
        }
        return q;
}

static struct rv_sign_answer ask(struct signer *s, struct rv_sign_request q)
{
        struct rv_sign_answer a;

        signer_answer(s, &q, &a);
        if (a.code != RV_SIGN_OK && a.code != RV_SIGN_STALE)
                assert_true(a.text[0] != 0);
        return a;
}

static struct rv_checkpoint checkpoint_of(const struct rv_sign_answer *a)
{
        struct rv_checkpoint c = {
                .log_id = LOG_ID, .size = a->size, .has_next_key = a->has_next_key, .n_signatures = a->n_signatures
        };

        memcpy(c.root, a->root, sizeof(c.root));
        if (c.has_next_key) {
                memcpy(c.next_key.log_id, LOG_ID, sizeof(c.log_id));
                memcpy(c.next_key.public_key, a->next_key, sizeof(a->next_key));
        }
        memcpy(c.signatures, a->signatures, sizeof(a->signatures));
        return c;
}

static int verify(const struct rv_sign_answer *a, const uint8_t key[RV_CHECKPOINT_KEY_BYTES])
{
        struct rv_checkpoint c = checkpoint_of(a);
        struct rv_checkpoint_key k = { .log_id = LOG_ID };

        memcpy(k.public_key, key, sizeof(k.public_key));
        return rv_checkpoint_verify(&c, &k);
}

/* Signed, and it is the root of the log's first @to records. */
static struct rv_sign_answer expect_signed(struct signer *s, uint64_t from, uint64_t to)
{
        struct rv_sign_answer a = ask(s, request(RV_SIGN_CHECKPOINT, from, to, 0));
        struct rv_merkle tree = tree_of(to, 0);
        rv_merkle_hash root;

        if (a.code != RV_SIGN_OK)
                fail_msg("%llu to %llu: code %u: %s", (unsigned long long)from, (unsigned long long)to, a.code, a.text);
        rv_merkle_root(&tree, root);
        assert_int_equal(a.size, to);
        assert_memory_equal(a.root, root, sizeof(root));
        assert_int_equal(verify(&a, a.key), 0);
        return a;
}

static void expect_code(struct signer *s, struct rv_sign_request q, enum rv_sign_code code, uint64_t size,
        const char *text)
{
        struct rv_sign_answer a = ask(s, q);

        if (a.code != code || !strstr(a.text, text))
                fail_msg("code %u instead of %d: %s", a.code, code, a.text);
        assert_int_equal(a.size, size);
        assert_int_equal(a.n_signatures, 0);
}

static void read_file(void **state, const char *name, struct rv_buf *out)
{
        out->size = 0;
        assert_int_equal(rv_read_file_at(AT_FDCWD, tmp_path(state, name), 4096, out), 0);
}

static void write_file(void **state, const char *name, const char *text, size_t n)
{
        int fd = open(tmp_path(state, name), O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(rv_write_all(fd, text, n), 0);
        close(fd);
}

static bool is_there(void **state, const char *name)
{
        return access(tmp_path(state, name), F_OK) == 0;
}

/* ---- What is signed ---- */

static void the_first_use_makes_a_key(void **state)
{
        struct signer s = begin(state);
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct rv_checkpoint_key key;
        struct rv_sign_answer a;
        struct stat st;

        expect_code(&s, (struct rv_sign_request){ .kind = RV_SIGN_QUERY, .flags = RV_SIGN_LOOK_ONLY, .log_id = LOG_ID }, RV_SIGN_NO_KEY, 0, "keygen");
        assert_false(is_there(state, "keys/ed25519"));
        a = ask(&s, request(RV_SIGN_QUERY, 0, 0, 0));
        assert_int_equal(a.code, RV_SIGN_OK);
        assert_int_equal(a.size, 0);
        assert_true(a.is_beside_state);
        assert_int_equal(stat(tmp_path(state, "keys/ed25519"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(st.st_size, 65);
        assert_int_equal(stat(tmp_path(state, "keys/ed25519.pub"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0644);
        read_file(state, "keys/ed25519.pub", &text);
        assert_int_equal(rv_checkpoint_key_read(text.data, text.size, &key), 0);
        assert_memory_equal(key.public_key, a.key, sizeof(a.key));
        assert_string_equal(key.log_id, LOG_ID);
        a = expect_signed(&s, 0, 7);
        assert_memory_equal(key.public_key, a.key, sizeof(a.key));
        end(&s);
}

static void one_root_for_one_size(void **state)
{
        struct signer s = begin(state);
        struct rv_sign_answer first, again;

        first = expect_signed(&s, 0, 5);
        /* The same again is the same signature. */
        again = expect_signed(&s, 5, 5);
        assert_memory_equal(first.signatures, again.signatures, sizeof(first.signatures[0]));
        /* Another log of that size, however it is shown. */
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 5, 5, 1), RV_SIGN_REFUSED, 5, "audit verify");
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 0, 5, 1), RV_SIGN_STALE, 5, "");
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 5, 9, 1), RV_SIGN_REFUSED, 5, "audit verify");
        expect_signed(&s, 5, 9);
        end(&s);
}

static void sizes_never_go_down(void **state)
{
        struct signer s = begin(state), other;

        expect_signed(&s, 0, 9);
        for (uint64_t size = 1; size < 9; size++) {
                expect_code(&s, request(RV_SIGN_CHECKPOINT, 0, size, 0), RV_SIGN_STALE, 9, "");
                expect_code(&s, request(RV_SIGN_CHECKPOINT, size, size, 0), RV_SIGN_STALE, 9, "");
                expect_code(&s, request(RV_SIGN_NEXT_KEY, size, size + 20, 0), RV_SIGN_STALE, 9, "");
        }
        assert_false(is_there(state, "keys/ed25519.new"));
        /* Another process has the same memory. */
        signer_init(&other, config, NULL);
        expect_code(&other, request(RV_SIGN_CHECKPOINT, 0, 4, 0), RV_SIGN_STALE, 9, "");
        expect_signed(&other, 9, 10);
        signer_fini(&other);
        expect_signed(&s, 10, 11);
        end(&s);
}

static void a_growth_that_does_not_fit(void **state)
{
        struct signer s = begin(state);
        struct rv_sign_request q;

        expect_code(&s, request(RV_SIGN_CHECKPOINT, 0, 0, 0), RV_SIGN_REFUSED, 0, "");
        expect_signed(&s, 0, 5);
        q = request(RV_SIGN_CHECKPOINT, 5, 9, 0);
        q.growth.start = 4;
        expect_code(&s, q, RV_SIGN_REFUSED, 5, "");
        q = request(RV_SIGN_CHECKPOINT, 5, 9, 0);
        q.growth.size = 3;
        expect_code(&s, q, RV_SIGN_REFUSED, 5, "");
        q = request(RV_SIGN_CHECKPOINT, 5, 9, 0);
        q.growth.parts[0].level = 2;
        expect_code(&s, q, RV_SIGN_REFUSED, 5, "");
        q = request(RV_SIGN_CHECKPOINT, 5, 9, 0);
        q.edge.edge[1][3] ^= 1;
        expect_code(&s, q, RV_SIGN_REFUSED, 5, "");
        expect_signed(&s, 5, 9);
        end(&s);
}

static void another_log_has_another_memory(void **state)
{
        struct signer s = begin(state);
        struct rv_sign_request q = request(RV_SIGN_CHECKPOINT, 0, 3, 1);

        expect_signed(&s, 0, 5);
        memset(q.log_id, 'a', RV_LOG_ID_SIZE - 1);
        assert_int_equal(ask(&s, q).code, RV_SIGN_OK);
        expect_signed(&s, 5, 6);
        end(&s);
}

/* ---- The memory ---- */

/* Whatever one byte of it becomes: what was signed last stands, what was signed before, or it is unusable. */
static void a_damaged_memory_forgets_no_more_than_one_size(void **state)
{
        struct signer s = begin(state);
        _cleanup_(rv_buf_fini) struct rv_buf good = { 0 };
        unsigned n_unusable = 0;

        expect_signed(&s, 0, 5);
        read_file(state, MEMORY, &good);
        assert_int_equal(good.size, 512);
        for (size_t i = 0; i < good.size; i += i < 110 ? 1 : 67) {
                good.data[i] ^= 1;
                write_file(state, MEMORY, good.data, good.size);
                expect_code(&s, request(RV_SIGN_CHECKPOINT, 0, 5, 1), RV_SIGN_UNUSABLE, 0, "restore it");
                good.data[i] ^= 1;
        }
        write_file(state, MEMORY, good.data, good.size);
        expect_signed(&s, 5, 9);
        read_file(state, MEMORY, &good);
        assert_int_equal(good.size, 1024);
        for (size_t i = 0; i < good.size; i += 13) {
                struct rv_sign_answer a;

                good.data[i] ^= 4;
                write_file(state, MEMORY, good.data, good.size);
                a = ask(&s, request(RV_SIGN_QUERY, 0, 0, 0));
                assert_int_equal(a.code, RV_SIGN_OK);
                assert_int_equal(a.size, i < 512 ? 9 : 5);
                good.data[i] ^= 4;
        }
        for (size_t n = 0; n < 1024; n += 31) {
                struct rv_sign_answer a;

                write_file(state, MEMORY, good.data, n);
                a = ask(&s, request(RV_SIGN_QUERY, 0, 0, 0));
                assert_int_equal(a.size, n < 512 ? 0 : 5);
                n_unusable += a.code == RV_SIGN_UNUSABLE;
        }
        assert_int_equal(n_unusable, 16);      /* all below one line but the empty file */
        write_file(state, MEMORY, good.data, 1024);
        expect_signed(&s, 9, 10);
        end(&s);
}

static void two_names_are_one_memory(void **state)
{
        struct signer s = begin(state);

        expect_signed(&s, 0, 5);
        assert_int_equal(link(tmp_path(state, MEMORY), tmp_path(state, "keys/kept")), 0);
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 5, 9, 0), RV_SIGN_UNUSABLE, 0, "2 names");
        assert_int_equal(unlink(tmp_path(state, "keys/kept")), 0);
        expect_signed(&s, 5, 9);
        end(&s);
}

static void no_write_no_signature(void **state)
{
        struct signer s = begin(state);
        struct rlimit limit;

        expect_signed(&s, 0, 5);
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
        limit.rlim_cur = 300;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 5, 9, 0), RV_SIGN_UNUSABLE, 5, "File too large");
        limit.rlim_cur = limit.rlim_max;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        expect_signed(&s, 5, 9);
        end(&s);
}

static void the_memory_is_a_file_of_its_own(void **state)
{
        struct signer s = begin(state);

        expect_signed(&s, 0, 5);
        assert_int_equal(unlink(tmp_path(state, MEMORY)), 0);
        assert_int_equal(symlink("/dev/full", tmp_path(state, MEMORY)), 0);
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 0, 5, 0), RV_SIGN_UNUSABLE, 0, "cannot open");
        assert_int_equal(unlink(tmp_path(state, MEMORY)), 0);
        assert_int_equal(mkfifo(tmp_path(state, MEMORY), 0600), 0);
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 0, 5, 0), RV_SIGN_UNUSABLE, 0, "no regular file");
        end(&s);
}

/* 8 signers, each asking for ever larger logs: whoever gets a signature has one that follows the one before. */
static int sign_many(struct signer *s)
{
        uint64_t size = 0;

        for (int i = 0; i < 40; i++) {
                struct rv_sign_answer a = ask(s, request(RV_SIGN_CHECKPOINT, size, size + 1 + (uint64_t)i % 3, 0));

                /* The others had it for as long as a signer waits: on a busy machine, and nothing is lost. */
                if (a.code == RV_SIGN_UNUSABLE && strstr(a.text, "cannot lock what was signed last"))
                        continue;
                if (a.code != RV_SIGN_OK && a.code != RV_SIGN_STALE) {
                        fprintf(stderr, "code %u: %s\n", a.code, a.text);
                        return 1;
                }
                if (a.code == RV_SIGN_OK && a.size != size + 1 + (uint64_t)i % 3)
                        return 1;
                if (a.size < size)
                        return 1;
                size = a.size;
        }
        return 0;
}

static void many_signers_at_once(void **state)
{
        struct signer s = begin(state);
        struct rv_sign_answer a;

        for (int i = 0; i < 8; i++) {
                pid_t pid = fork();

                assert_true(pid >= 0);
                if (pid == 0)
                        _exit(sign_many(&s));
        }
        for (int i = 0; i < 8; i++) {
                int status;

                assert_true(wait(&status) > 0);
                assert_int_equal(status, 0);
        }
        a = ask(&s, request(RV_SIGN_QUERY, 0, 0, 0));
        assert_true(a.size >= 40);
        expect_signed(&s, a.size, a.size + 1);
        end(&s);
}

/* ---- Keys that are not as they should be ---- */

static void a_key_that_is_open_to_others(void **state)
{
        struct signer s = begin(state);

        expect_signed(&s, 0, 5);
        assert_int_equal(chmod(tmp_path(state, "keys/ed25519"), 0640), 0);
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 5, 9, 0), RV_SIGN_UNUSABLE, 5, "mode 640");
        assert_int_equal(chmod(tmp_path(state, "keys/ed25519"), 0600), 0);
        expect_signed(&s, 5, 9);
        if (geteuid() != 0)
                skip();
        assert_int_equal(chown(tmp_path(state, "keys/ed25519"), 12345, 12345), 0);
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 9, 10, 0), RV_SIGN_UNUSABLE, 9, "uid 12345");
        end(&s);
}

static void a_key_that_is_none(void **state)
{
        static const char *const texts[] = { "", "\n", "00\n",
                "zz112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n",
                "00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff\n",
                "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
                "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n\n" };
        struct signer s = begin(state);

        expect_signed(&s, 0, 5);
        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++) {
                write_file(state, "keys/ed25519", texts[i], strlen(texts[i]));
                expect_code(&s, request(RV_SIGN_CHECKPOINT, 5, 9, 0), RV_SIGN_UNUSABLE, 5, "64 hex digits");
        }
        assert_int_equal(unlink(tmp_path(state, "keys/ed25519")), 0);
        assert_int_equal(symlink("ed25519.pub", tmp_path(state, "keys/ed25519")), 0);
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 5, 9, 0), RV_SIGN_UNUSABLE, 5, "cannot open");
        end(&s);
}

/* No other is made in silence where one was. */
static void a_key_that_is_gone(void **state)
{
        struct signer s = begin(state);

        expect_signed(&s, 0, 5);
        assert_int_equal(rename(tmp_path(state, "keys/ed25519"), tmp_path(state, "kept")), 0);
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 5, 9, 0), RV_SIGN_UNUSABLE, 5, "restore it from a copy");
        assert_int_equal(unlink(tmp_path(state, "keys/ed25519.pub")), 0);
        expect_code(&s, request(RV_SIGN_QUERY, 0, 0, 0), RV_SIGN_UNUSABLE, 5, "restore it from a copy");
        assert_false(is_there(state, "keys/ed25519"));
        assert_int_equal(rename(tmp_path(state, "kept"), tmp_path(state, "keys/ed25519")), 0);
        expect_signed(&s, 5, 9);
        assert_true(is_there(state, "keys/ed25519.pub"));
        end(&s);
}

static void a_key_of_the_configuration_is_not_made(void **state)
{
        char path[512];
        struct signer s = begin(state);

        snprintf(path, sizeof(path), "%s/own/key", (const char *)*state);
        signer_fini(&s);
        signer_init(&s, config, path);
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 0, 5, 0), RV_SIGN_UNUSABLE, 0, "directory");
        assert_int_equal(mkdir(tmp_path(state, "own"), 0700), 0);
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 0, 5, 0), RV_SIGN_NO_KEY, 0, "keygen");
        assert_int_equal(ask(&s, request(RV_SIGN_MAKE_KEY, 0, 0, 0)).code, RV_SIGN_OK);
        expect_code(&s, request(RV_SIGN_MAKE_KEY, 0, 0, 0), RV_SIGN_THERE, 0, "there already");
        expect_signed(&s, 0, 5);
        /* A directory that others can write to. */
        signer_fini(&s);
        signer_init(&s, config, path);
        assert_int_equal(chmod(tmp_path(state, "own"), 0777), 0);
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 5, 9, 0), RV_SIGN_UNUSABLE, 0, "others can write");
        end(&s);
}

/* STATE/keys is the loop's until the first key is made, and from then on the signer's. */
static void the_directory_is_taken_over_once(void **state)
{
        struct signer s = begin(state);
        struct stat st;

        if (geteuid() != 0)
                skip();
        assert_int_equal(mkdir(tmp_path(state, "keys"), 0700), 0);
        assert_int_equal(chown(tmp_path(state, "keys"), 12345, 12346), 0);
        expect_signed(&s, 0, 5);
        assert_int_equal(stat(tmp_path(state, "keys"), &st), 0);
        assert_int_equal(st.st_uid, 0);
        assert_int_equal(st.st_gid, 12346);
        assert_int_equal(st.st_mode & 07777, 01770);
        signer_fini(&s);
        signer_init(&s, config, NULL);
        assert_int_equal(chown(tmp_path(state, "keys"), 12345, 12346), 0);
        expect_code(&s, request(RV_SIGN_CHECKPOINT, 5, 9, 0), RV_SIGN_UNUSABLE, 0, "uid 12345");
        end(&s);
}

/* ---- Changing keys ---- */

static struct rv_sign_request settle(const struct rv_sign_answer *a, uint32_t flags)
{
        struct rv_sign_request q = { .kind = RV_SIGN_SETTLE, .flags = flags, .log_id = LOG_ID };

        memcpy(q.next_key, a->next_key, sizeof(q.next_key));
        return q;
}

static void old_name(const uint8_t key[RV_CHECKPOINT_KEY_BYTES], const char *suffix, char ret[64])
{
        struct rv_checkpoint_key k = { .log_id = LOG_ID };
        uint8_t id[4];
        char hex[9];

        memcpy(k.public_key, key, sizeof(k.public_key));
        rv_checkpoint_key_id(&k, id);
        rv_hex(id, sizeof(id), hex);
        snprintf(ret, 64, "keys/ed25519.old-%s%s", hex, suffix);
}

static void keys_are_changed(void **state)
{
        struct signer s = begin(state);
        struct rv_sign_answer first, change, during, after;
        char name[64];

        first = expect_signed(&s, 0, 5);
        change = ask(&s, request(RV_SIGN_NEXT_KEY, 5, 7, 0));
        assert_int_equal(change.code, RV_SIGN_OK);
        assert_true(change.has_next_key);
        assert_int_equal(change.n_signatures, 2);
        assert_int_equal(verify(&change, first.key), 0);
        assert_int_equal(verify(&change, change.next_key), 0);
        /* Until that is settled both sign, and name it. */
        during = expect_signed(&s, 7, 8);
        assert_true(during.has_next_key);
        assert_memory_equal(during.key, first.key, sizeof(first.key));
        assert_int_equal(verify(&during, change.next_key), 0);
        /* Another wish for a change is the same change. */
        during = ask(&s, request(RV_SIGN_NEXT_KEY, 8, 8, 0));
        assert_memory_equal(during.next_key, change.next_key, sizeof(change.next_key));
        assert_int_equal(ask(&s, settle(&change, 0)).code, RV_SIGN_OK);
        after = expect_signed(&s, 8, 9);
        assert_false(after.has_next_key);
        assert_int_equal(after.n_signatures, 1);
        assert_memory_equal(after.key, change.next_key, sizeof(after.key));
        assert_int_equal(verify(&after, first.key), RV_CHECKPOINT_E_UNSIGNED);
        assert_int_equal(ask(&s, settle(&change, 0)).code, RV_SIGN_OK);
        old_name(first.key, "", name);
        assert_true(is_there(state, name));
        old_name(first.key, ".pub", name);
        assert_true(is_there(state, name));
        /* Only the key that was named. */
        expect_code(&s, settle(&first, 0), RV_SIGN_REFUSED, 9, "again");
        end(&s);
}

static void an_old_key_can_be_destroyed(void **state)
{
        struct signer s = begin(state);
        _cleanup_(rv_buf_fini) struct rv_buf held = { 0 };
        struct rv_sign_answer first, change;
        char name[64];
        int fd;

        first = expect_signed(&s, 0, 5);
        fd = open(tmp_path(state, "keys/ed25519"), O_RDONLY | O_CLOEXEC);
        change = ask(&s, request(RV_SIGN_NEXT_KEY, 5, 7, 0));
        assert_int_equal(ask(&s, settle(&change, RV_SIGN_DESTROY)).code, RV_SIGN_OK);
        assert_int_equal(rv_read_fd(fd, 100, &held), 0);
        for (size_t i = 0; i < 64; i++)
                assert_int_equal(held.data[i], 0);
        close(fd);
        old_name(first.key, "", name);
        assert_false(is_there(state, name));
        old_name(first.key, ".pub", name);
        assert_true(is_there(state, name));
        expect_signed(&s, 7, 8);
        end(&s);
}

/* As it is after a kill behind the copy of the old key, and before the new one has its place. */
static void a_change_that_was_interrupted(void **state)
{
        struct signer s = begin(state);
        struct rv_sign_answer first, change, after;
        char name[64];

        first = expect_signed(&s, 0, 5);
        change = ask(&s, request(RV_SIGN_NEXT_KEY, 5, 7, 0));
        old_name(first.key, "", name);
        write_file(state, name, "half", 4);
        write_file(state, "keys/ed25519.pub.tmp", "half", 4);
        end(&s);
        s = begin(state);
        after = expect_signed(&s, 7, 8);
        assert_true(after.has_next_key);
        change = ask(&s, request(RV_SIGN_NEXT_KEY, 8, 9, 0));
        assert_int_equal(ask(&s, settle(&change, 0)).code, RV_SIGN_OK);
        after = expect_signed(&s, 9, 10);
        assert_memory_equal(after.key, change.next_key, sizeof(after.key));
        assert_false(is_there(state, "keys/ed25519.new"));
        end(&s);
}

/* One signer has a key loaded that another one has changed since. */
static void another_signer_has_changed_keys(void **state)
{
        struct signer s = begin(state), other;
        struct rv_sign_answer change, after;

        expect_signed(&s, 0, 5);
        signer_init(&other, config, NULL);
        change = ask(&other, request(RV_SIGN_NEXT_KEY, 5, 7, 0));
        assert_true(expect_signed(&s, 7, 8).has_next_key);
        assert_int_equal(ask(&other, settle(&change, 0)).code, RV_SIGN_OK);
        after = expect_signed(&s, 8, 9);
        assert_memory_equal(after.key, change.next_key, sizeof(after.key));
        signer_fini(&other);
        end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(the_first_use_makes_a_key),
                TMP(one_root_for_one_size),
                TMP(sizes_never_go_down),
                TMP(a_growth_that_does_not_fit),
                TMP(another_log_has_another_memory),
                TMP(a_damaged_memory_forgets_no_more_than_one_size),
                TMP(two_names_are_one_memory),
                TMP(no_write_no_signature),
                TMP(the_memory_is_a_file_of_its_own),
                TMP(many_signers_at_once),
                TMP(a_key_that_is_open_to_others),
                TMP(a_key_that_is_none),
                TMP(a_key_that_is_gone),
                TMP(a_key_of_the_configuration_is_not_made),
                TMP(the_directory_is_taken_over_once),
                TMP(keys_are_changed),
                TMP(an_old_key_can_be_destroyed),
                TMP(a_change_that_was_interrupted),
                TMP(another_signer_has_changed_keys),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
