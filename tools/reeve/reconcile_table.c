#include "reconcile_table.h"

#include <string.h>

#define ROWS_FIRST 1024

static size_t place_of(const struct reconcile_table *t, const uint8_t *id)
{
        uint64_t hash;
        size_t at;

        memcpy(&hash, id, sizeof(hash));
        for (at = (size_t)hash & (t->n_rows - 1); t->is_used[at]; at = (at + 1) & (t->n_rows - 1))
                if (memcmp(t->rows + at * t->row_size, id, t->n_id) == 0)
                        break;
        return at;
}

static int grow(struct reconcile_table *t)
{
        struct reconcile_table larger = { .row_size = t->row_size,
                .n_id = t->n_id,
                .n_rows = t->n_rows ? t->n_rows * 2 : ROWS_FIRST,
                .n_used = t->n_used };
        const uint8_t *row;
        size_t at = 0;

        larger.rows = calloc(larger.n_rows, larger.row_size);
        larger.is_used = calloc(larger.n_rows, sizeof(*larger.is_used));
        if (!larger.rows || !larger.is_used) {
                reconcile_table_fini(&larger);
                return rv_raise(-ENOMEM);
        }
        while ((row = reconcile_table_next(t, &at))) {
                size_t to = place_of(&larger, row);

                memcpy(larger.rows + to * t->row_size, row, t->row_size);
                larger.is_used[to] = true;
        }
        reconcile_table_fini(t);
        *t = larger;
        return 0;
}

void *reconcile_table_get(struct reconcile_table *t, const uint8_t *id, bool is_made)
{
        size_t at;

        if (is_made && t->n_used * 4 >= t->n_rows * 3 && grow(t) < 0)
                return NULL;
        if (!t->n_rows)
                return NULL;
        at = place_of(t, id);
        if (!t->is_used[at]) {
                if (!is_made)
                        return NULL;
                t->is_used[at] = true;
                t->n_used++;
                memcpy(t->rows + at * t->row_size, id, t->n_id);
        }
        return t->rows + at * t->row_size;
}

void *reconcile_table_next(const struct reconcile_table *t, size_t *at)
{
        while (*at < t->n_rows) {
                size_t i = (*at)++;

                if (t->is_used[i])
                        return t->rows + i * t->row_size;
        }
        return NULL;
}

void reconcile_table_fini(struct reconcile_table *t)
{
        free(t->rows);
        free(t->is_used);
        t->rows = NULL;
        t->is_used = NULL;
        t->n_rows = t->n_used = 0;
}
