#include "audit_keys.h"

#include "audit/proof_json.h"
#include "base/fd.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMAND "audit check-proof"

static const char help[] =
        "usage: reeve audit check-proof --key KEY|FILE… FILE|-\n"
        "\n"
        "Checks a proof that `reeve audit prove` made, without the log: that the path leads to the\n"
        "root, that the root is a checkpoint's, and that the checkpoint is signed by the key, or\n"
        "by one of the keys. Without --key nothing shows who signed it, and the proof proves\n"
        "nothing.\n"
        "\n"
        "Exit status: 0 it is proved; 2 it is not, or wrong usage.\n";

static int read_text(const char *name, struct rv_buf *out)
{
        if (strcmp(name, "-") == 0)
                return rv_read_fd(STDIN_FILENO, RV_PROOF_JSON_BYTES_MAX, out);
        return rv_read_file_at(AT_FDCWD, name, RV_PROOF_JSON_BYTES_MAX, out);
}

static int refuse(const char *name, const char *why)
{
        say("%s: %s: %s", COMMAND, name, why);
        return EXIT_USAGE;
}

static int check_signature(const char *name, const struct rv_proof_file *file, const struct audit_keys *keys)
{
        int r = RV_CHECKPOINT_E_UNSIGNED;

        if (!file->has_checkpoint)
                return refuse(name, "the path leads to the root, but there is no checkpoint: nothing shows that the root is the log's");
        if (keys->n == 0)
                return refuse(name, "the path leads to the checkpoint's root, but nothing shows who signed it: give the log's key with --key");
        for (size_t i = 0; r > 0 && i < keys->n; i++)
                r = rv_checkpoint_verify(&file->checkpoint, &keys->keys[i]);
        if (r < 0)
                return refuse(name, strerror(-r));
        return r == 0 ? 0 : refuse(name, "the checkpoint is not signed by the key");
}

static void print_result(const struct rv_proof_file *file)
{
        const struct rv_proof *proof = &file->proof;
        char root[RV_SHA256_HEX_SIZE];

        rv_hex(file->root, sizeof(file->root), root);
        if (proof->is_consistency)
                print_text("proved: the log %s of %" PRIu64 " records begins with the %" PRIu64 " records of the smaller one", file->log_id, proof->size, proof->from);
        else
                print_text("proved: record %" PRIu64 " of the log %s is this one, as of %" PRIu64 " records", proof->from, file->log_id, proof->size);
        print_text("root    %s", root);
        if (proof->is_consistency) {
                rv_hex(file->from_root, sizeof(file->from_root), root);
                print_text("from    %s", root);
        } else {
                print_text("record  %s", file->record);
        }
}

static int check(const char *name, const struct audit_keys *keys)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct rv_proof_file file = { 0 };
        struct rv_error err = { 0 };
        int r = read_text(name, &text);

        if (r < 0)
                return refuse(name, strerror(-r));
        r = rv_proof_file_read(text.data ? text.data : "", text.size, &file, &err);
        if (r == 0)
                r = rv_proof_file_check(&file, &err);
        if (r != 0)
                r = refuse(name, err.message);
        else
                r = check_signature(name, &file, keys);
        if (r == 0)
                print_result(&file);
        rv_proof_file_fini(&file);
        return r;
}

int audit_check_proof(int argc, char **argv)
{
        static const struct option long_options[] = { { "key", required_argument, NULL, 'k' }, { "help", no_argument, NULL, 'h' }, { 0 } };
        struct audit_keys keys = { .n = 0 };
        struct rv_error err = { 0 };
        int id;

        opterr = 0;
        optind = 1;
        while ((id = getopt_long(argc, argv, "h", long_options, NULL)) >= 0) {
                if (id == 'h') {
                        fputs(help, stdout);
                        return 0;
                }
                if (id != 'k')
                        return usage_error(COMMAND, "an option that is unknown, or lacks its value");
                if (audit_key_add(&keys, optarg, &err) < 0)
                        return usage_error(COMMAND, "%s", err.message);
        }
        if (argc - optind != 1)
                return usage_error(COMMAND, "say one file, or -");
        return check(argv[optind], &keys);
}
