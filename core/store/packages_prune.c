#include "store/packages_list.h"
#include "store/packages_private.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct pruning {
        struct rv_store *store;
        const struct rv_store_prune *p;
        struct rv_store_pruned *ret;
        struct rv_error *err;
};

static bool is_older(uint64_t now_us, uint64_t then_us, uint64_t than_us)
{
        return now_us > then_us && now_us - then_us >= than_us;
}

/* Somebody may have used it since the list was made. */
static bool was_used(const struct pruning *x, const struct rv_store_layer *layer)
{
        struct stat st;

        return fstatat(x->store->used_fd, layer->digest, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               (uint64_t)st.st_mtim.tv_sec * 1000000 + (uint64_t)st.st_mtim.tv_nsec / 1000 > layer->last_use_us;
}

/* Nobody can begin to use it while this holds its note of use, which goes with it. Return: 1 it is gone; 0 it is in use; -errno */
static int remove_layer(const struct pruning *x, const struct rv_store_layer *layer)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        int r;

        if (x->p->is_dry)
                return !layer->is_in_use;
        if (was_used(x, layer))
                return 0;
        fd = rv__store_hold(x->store->used_fd, layer->digest, LOCK_EX | LOCK_NB);
        if (fd == -EWOULDBLOCK)
                return 0;
        if (fd < 0)
                return rv_error_set(x->err, rv_trace(fd), "cannot hold %s/used/%s: %s", x->store->path, layer->digest, strerror(-fd));
        r = x->p->remove(x->p->ctx, layer->digest, x->err);
        if (r < 0)
                return rv_error_set(x->err, rv_trace(r), "cannot remove the layer %s: %s", layer->digest, strerror(-r));
        (void)unlinkat(x->store->used_fd, layer->digest, 0);
        return 1;
}

static const char *reason(const struct pruning *x, const struct rv_store_layer *layer)
{
        if (x->p->older_us && is_older(x->p->now_us, layer->last_use_us, x->p->older_us))
                return "age";
        return x->ret->left_bytes > x->p->max_bytes ? "size" : NULL;
}

static int prune_layers(const struct pruning *x, const struct rv_store_list *list)
{
        for (size_t i = 0; i < list->n_layers; i++) {
                const struct rv_store_layer *layer = &list->layers[i];
                const char *why = reason(x, layer);
                int r;

                if (!why)
                        continue;
                r = remove_layer(x, layer);
                if (r < 0)
                        return rv_trace(r);
                if (r == 0) {
                        x->ret->n_in_use++;
                        continue;
                }
                x->ret->n_layers++;
                x->ret->bytes += layer->bytes;
                x->ret->left_bytes -= layer->bytes;
                if (x->p->tell)
                        x->p->tell(x->p->ctx, layer, why);
        }
        return 0;
}

static void prune_locks(const struct pruning *x, const struct rv_store_list *list)
{
        uint64_t than_us = x->p->older_us ? x->p->older_us : RV_STORE_LOCK_IDLE_US;
        char name[RV_STORE_DIGITS + sizeof(".json")];

        for (size_t i = 0; i < list->n_locks; i++) {
                if (!is_older(x->p->now_us, list->locks[i].last_use_us, than_us))
                        continue;
                snprintf(name, sizeof(name), "%s.json", list->locks[i].key);
                x->ret->n_locks += x->p->is_dry || unlinkat(x->store->locks_fd, name, 0) == 0;
        }
}

int rv_store_prune(
        struct rv_store *store, const struct rv_store_prune *p, struct rv_store_pruned *ret, struct rv_error *err)
{
        struct pruning x = { store, p, ret, err };
        struct rv_store_list list = { 0 };
        int r = rv_store_list(store, &list, err);

        *ret = (struct rv_store_pruned){ .left_bytes = list.layers_bytes };
        if (r == 0)
                r = prune_layers(&x, &list);
        if (r == 0)
                prune_locks(&x, &list);
        if (r == 0 && !p->is_dry)
                (void)rv__store_prune_built(store, &list);
        rv_store_list_fini(&list);
        if (r == 0 && !p->is_dry)
                (void)rv_store_sweep(store);
        return r < 0 ? rv_trace(r) : 0;
}
