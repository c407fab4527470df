#include "package/closure_paths.h"

#include <string.h>

#define UNREACHED UINT32_MAX
#define EXTRA_COST 65536u          /* more than the longest way without */
#define PACKAGES_MAX 10000u

struct node {
        const json_t *package;
        uint32_t cost;
        size_t from;
        bool is_done;
};

struct graph {
        struct node *nodes;
        size_t n;
        json_t *positions;         /* canonical name -> list of positions */
};

/* PEP 503 for the names of Python's metadata; npm's, which may have capitals and are looked up as they are, have "needs". */
static void canonicalise(const char *name, char *ret, size_t size)
{
        size_t n = 0;

        for (; *name && n + 1 < size; name++) {
                bool is_separator = strchr("-_.", *name) != NULL;

                if (is_separator && n && ret[n - 1] == '-')
                        continue;
                ret[n++] = is_separator ? '-' : *name >= 'A' && *name <= 'Z' ? (char)(*name | 0x20) : *name;
        }
        ret[n] = 0;
}

static bool is_word(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Does a marker ask about an extra? The word outside of quotes. */
static bool has_extra(const char *marker)
{
        char quote = 0, before = ' ';

        for (const char *p = marker; *p; before = *p++) {
                if (quote) {
                        quote = *p == quote ? 0 : quote;
                } else if (*p == '"' || *p == '\'') {
                        quote = *p;
                } else if (strncmp(p, "extra", 5) == 0 && !is_word(before) && !is_word(p[5])) {
                        return true;
                }
        }
        return false;
}

static void relax(struct graph *g, size_t from, size_t to, uint32_t cost)
{
        struct node *node = &g->nodes[to];

        if (node->is_done || g->nodes[from].cost + cost >= node->cost)
                return;
        node->cost = g->nodes[from].cost + cost;
        node->from = from;
}

static void follow(struct graph *g, size_t from)
{
        const json_t *needs = json_object_get(g->nodes[from].package, "needs"), *edge, *position;
        const json_t *list = json_is_array(needs) ? needs : json_object_get(g->nodes[from].package, "requires");
        size_t i, j;

        json_array_foreach(list, i, edge) {
                char name[256];
                bool is_extra;

                if (json_is_integer(edge)) {
                        if (json_integer_value(edge) >= 0 && (uint64_t)json_integer_value(edge) < g->n)
                                relax(g, from, (size_t)json_integer_value(edge), 1);
                        continue;
                }
                is_extra = has_extra(rv_json_get_string(edge, "marker", ""));
                canonicalise(json_is_string(edge) ? json_string_value(edge) : rv_json_get_string(edge, "name", ""), name, sizeof(name));
                json_array_foreach(json_object_get(g->positions, name), j, position)
                        relax(g, from, (size_t)json_integer_value(position), is_extra ? EXTRA_COST : 1);
        }
}

/* Dijkstra's algorithm without a heap: the lists are short. */
static void find_ways(struct graph *g)
{
        for (;;) {
                size_t best = g->n;

                for (size_t i = 0; i < g->n; i++)
                        if (!g->nodes[i].is_done && g->nodes[i].cost != UNREACHED &&
                                (best == g->n || g->nodes[i].cost < g->nodes[best].cost))
                                best = i;
                if (best == g->n)
                        return;
                g->nodes[best].is_done = true;
                follow(g, best);
        }
}

static int fill(struct graph *g, const json_t *packages)
{
        const json_t *package;
        size_t i;

        json_array_foreach(packages, i, package) {
                const char *name = rv_json_get_string(package, "name", NULL);
                char key[256];
                json_t *list;

                if (!name)
                        return rv_raise(-EINVAL);
                canonicalise(name, key, sizeof(key));
                g->nodes[i] = (struct node){ .package = package, .cost = UNREACHED, .from = i };
                if (json_is_true(json_object_get(package, "direct")))
                        g->nodes[i].cost = 0;
                list = json_object_get(g->positions, key);
                if (!list) {
                        list = json_array();
                        if (json_object_set_new(g->positions, key, list) < 0)
                                return rv_raise(-ENOMEM);
                }
                if (json_array_append_new(list, json_integer((json_int_t)i)) < 0)
                        return rv_raise(-ENOMEM);
        }
        return 0;
}

static json_t *path_to(const struct graph *g, size_t to)
{
        json_t *path = json_array();

        for (size_t i = to;; i = g->nodes[i].from) {
                if (path && json_array_insert(path, 0, json_object_get(g->nodes[i].package, "name")) < 0) {
                        json_decref(path);
                        return NULL;
                }
                if (g->nodes[i].from == i)
                        return path;
        }
}

int rv_closure_paths(const json_t *packages, json_t **ret)
{
        _cleanup_(rv_json_unrefp) json_t *paths = json_array(), *positions = json_object();
        _cleanup_(rv_freep) struct node *nodes = calloc(json_array_size(packages) + 1, sizeof(*nodes));
        struct graph g = { .nodes = nodes, .n = json_array_size(packages), .positions = positions };
        int r;

        if (!json_is_array(packages) || g.n > PACKAGES_MAX)
                return rv_raise(-EINVAL);
        if (!paths || !positions || !nodes)
                return rv_raise(-ENOMEM);
        r = fill(&g, packages);
        if (r < 0)
                return rv_trace(r);
        find_ways(&g);
        for (size_t i = 0; i < g.n; i++)
                if (json_array_append_new(paths, path_to(&g, i)) < 0)
                        return rv_raise(-ENOMEM);
        *ret = rv_take(&paths);
        return 0;
}
