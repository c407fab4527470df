#include "audit/tree.h"

#include "audit/lines.h"
#include "audit/record_scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TREE_FILE "tree"
#define TREE_HEAD "reeve tree 1\n"
#define TREE_BYTES_MAX ((size_t)8192)
#define HASH_HEX ((size_t)2 * RV_SHA256_SIZE)

static unsigned n_edges(const struct rv_merkle *tree)
{
        return (unsigned)__builtin_popcountll(tree->size);
}

/* ---- The file: a head, "SIZE SEGMENT OFFSET BYTES SHA256", and a line for each hash of the edge ---- */

static int render(const struct rv_merkle *base, const struct rv_tree_place *p, struct rv_buf *out)
{
        char hex[HASH_HEX + 1];

        rv_buf_printf(out, TREE_HEAD "%" PRIu64 " %s %" PRIu64 " %zu %s\n", base->size, p->segment, p->offset, p->n, p->sha256);
        for (unsigned i = 0; i < n_edges(base); i++) {
                rv_hex(base->edge[i], RV_SHA256_SIZE, hex);
                rv_buf_printf(out, "%s\n", hex);
        }
        return rv_buf_error(out);
}

static void read_edge(const char *hex, struct rv_merkle *base)
{
        for (unsigned i = 0; i < n_edges(base); i++, hex += HASH_HEX + 1)
                for (size_t k = 0; k < RV_SHA256_SIZE; k++) {
                        const char digits[3] = { hex[2 * k], hex[2 * k + 1], 0 };

                        base->edge[i][k] = (uint8_t)strtoul(digits, NULL, 16);
                }
}

/* Strictly: it is what would be written. */
static bool parse(const struct rv_buf *text, struct rv_merkle *base, struct rv_tree_place *place)
{
        _cleanup_(rv_buf_fini) struct rv_buf again = { 0 };
        int n = 0;

        if (!text->size ||
                sscanf(text->data, TREE_HEAD "%16" SCNu64 " %26[0-9.jsonl] %19" SCNu64 " %9zu %64[0-9a-f]\n%n",
                        &base->size, place->segment, &place->offset, &place->n, place->sha256, &n) != 5 ||
                !n || !rv_log_is_segment(place->segment) || !base->size ||
                text->size != (size_t)n + n_edges(base) * (HASH_HEX + 1))
                return false;
        read_edge(text->data + n, base);
        return render(base, place, &again) == 0 && again.size == text->size &&
                memcmp(again.data, text->data, again.size) == 0;
}

/* Is the line there that the place describes? */
static bool is_place_there(struct rv_log *log, const struct rv_tree_place *place)
{
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };
        char sha256[RV_SHA256_HEX_SIZE];

        if (rv_log_read_line(log, place->segment, place->offset, place->n, &line, NULL) <= 0)
                return false;
        rv_sha256_hex(line.data, line.size, sha256);
        return strcmp(sha256, place->sha256) == 0;
}

void rv_tree_restart(struct rv_tree *tree)
{
        *tree = (struct rv_tree){ .log = tree->log };
}

void rv_tree_open(struct rv_log *log, struct rv_tree *ret)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct rv_merkle base = { 0 };
        struct rv_tree_place place = { 0 };

        ret->log = log;
        rv_tree_restart(ret);
        if (rv_read_file_at(log->audit_fd, TREE_FILE, TREE_BYTES_MAX, &text) < 0 || !parse(&text, &base, &place) ||
            !is_place_there(log, &place))
                return;
        ret->base = base;
        ret->base_place = ret->place = place;
        rv_merkle_growth_begin(&ret->growth, base.size);
}

void rv_tree_save(const struct rv_tree *tree)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };

        if (tree->base.size && render(&tree->base, &tree->base_place, &text) == 0)
                (void)rv_write_file_at(tree->log->audit_fd, TREE_FILE, text.data, text.size, 0600, false);
}

/* ---- Reading ---- */

/* The first line of a segment: is it the one that its name says? */
static int check_segment(const struct rv_tree *tree, const struct rv_lines *reader, struct rv_error *err)
{
        uint64_t size = rv_tree_size(tree), first = rv_log_segment_first(reader->segment);

        if (first == size)
                return 0;
        if (size == 0)
                return rv_error_set(err, rv_raise(-ESTALE), "%s/audit: the log begins with %s, and audit/tree, which would say what came before, is not there or does not fit; put the older segments back once, then seal with `reeve audit checkpoint`",
                                    tree->log->state_dir, reader->segment);
        return rv_error_set(err, rv_raise(-EBADMSG), "%s/audit/%s: %" PRIu64 " records come before it, and its name says %" PRIu64 "; a segment is missing or was changed, see `reeve audit verify`",
                            tree->log->state_dir, reader->segment, size, first);
}

static void count(struct rv_tree *tree, const struct rv_lines *reader, const char *line, size_t n)
{
        struct rv_record_head head;
        rv_merkle_hash leaf;

        rv_record_scan(line, n, &head);
        tree->n_others += !rv_record_text_is(&head.kind, "checkpoint");
        rv_merkle_leaf(line, n, leaf);
        rv_merkle_growth_push(&tree->growth, leaf);
        memcpy(tree->place.segment, reader->segment, sizeof(tree->place.segment));
        tree->place.offset = reader->offset;
        tree->place.n = n;
}

static int read_lines(struct rv_tree *tree, struct rv_lines *reader, uint64_t size, struct rv_error *err)
{
        const char *line;
        size_t n;
        int r;

        do {
                r = rv_lines_next(reader, &line, &n, err);
                if (r < 0)
                        return rv_trace(r);
                if (r == 0)
                        return rv_error_set(err, rv_raise(-EBADMSG), "%s/audit: the log ends after %" PRIu64 " records, and %" PRIu64 " were written; see `reeve audit verify`",
                                            tree->log->state_dir, rv_tree_size(tree), size);
                if (reader->offset == 0) {
                        r = check_segment(tree, reader, err);
                        if (r < 0)
                                return rv_trace(r);
                }
                count(tree, reader, line, n);
        } while (rv_tree_size(tree) < size);
        rv_sha256_hex(line, n, tree->place.sha256);
        /* Where the log itself knows what stands there, both must have seen the same. */
        if (tree->log->is_tail_known && tree->log->next_seq == size && strcmp(tree->log->prev, tree->place.sha256) != 0)
                return rv_error_set(err, rv_raise(-EBADMSG), "%s/audit/%s: the last record is not the one that was written; see `reeve audit verify`",
                                    tree->log->state_dir, tree->place.segment);
        return 0;
}

int rv_tree_read(struct rv_tree *tree, uint64_t size, struct rv_error *err)
{
        const struct rv_tree_place *p = &tree->place;
        struct rv_lines reader;
        struct rv_tree grown;
        int r;

        if (size <= rv_tree_size(tree))
                return 0;
        grown = *tree;
        r = rv_lines_begin_at(&reader, tree->log->audit_fd, tree->log->audit_path, p->segment,
                *p->segment ? p->offset + p->n + 1 : 0, err);
        if (r == 0)
                r = read_lines(&grown, &reader, size, err);
        rv_lines_close(&reader);
        if (r == 0)
                *tree = grown;
        return rv_trace(r);
}

void rv_tree_settle(struct rv_tree *tree)
{
        rv_require(rv_merkle_grow(&tree->base, &tree->growth) == 0);
        rv_merkle_growth_begin(&tree->growth, tree->base.size);
        tree->base_place = tree->place;
        tree->n_others = 0;
}

int rv_tree_move(struct rv_tree *tree, uint64_t size, struct rv_error *err)
{
        struct rv_tree moved = { .log = tree->log };
        int r;

        if (size >= tree->base.size) {
                moved.base = tree->base;
                moved.base_place = moved.place = tree->base_place;
                rv_merkle_growth_begin(&moved.growth, moved.base.size);
        }
        r = rv_tree_read(&moved, size, err);
        if (r < 0)
                return rv_trace(r);
        rv_tree_settle(&moved);
        *tree = moved;
        return 0;
}
