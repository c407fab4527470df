#include "base/config_private.h"

#include "base/config_value.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STATE_AS_ROOT "/var/lib/reeve"

static int take_mapping(struct rv_config_parser *p, const struct rv_yaml_node *node, const char *prefix,
        size_t n_prefix);

/*
 * The row that @key below @prefix leads to: the key's own (*ret_n is its path's length), or the first of
 * those below it (*ret_n is the length of the part that leads there).
 */
static const struct rv_config_key *find_key(const char *prefix, size_t n_prefix, const char *key, size_t *ret_n)
{
        size_t n_key = strlen(key);

        for (size_t i = 0; i < rv_config_n_keys; i++) {
                const char *part = rv_config_keys[i].path;
                size_t n;

                if (n_prefix && (strncmp(part, prefix, n_prefix) != 0 || part[n_prefix] != '.'))
                        continue;
                part += n_prefix ? n_prefix + 1 : 0;
                n = strcspn(part, ".");
                if ((n == 1 && *part == '*') || (n == n_key && memcmp(part, key, n) == 0)) {
                        *ret_n = (size_t)(part - rv_config_keys[i].path) + n;
                        return &rv_config_keys[i];
                }
        }
        return NULL;
}

static int refuse_unknown(struct rv_config_parser *p, const struct rv_yaml_node *node, const char *prefix,
        size_t n_prefix)
{
        char known[512] = "";
        const char *last = "";
        size_t n_last = 0, n_known = 0;

        for (size_t i = 0; i < rv_config_n_keys; i++) {
                const char *part = rv_config_keys[i].path;
                size_t n;

                if (rv_config_keys[i].type == RV_CONFIG_REFUSED)
                        continue;
                if (n_prefix && (strncmp(part, prefix, n_prefix) != 0 || part[n_prefix] != '.'))
                        continue;
                part += n_prefix ? n_prefix + 1 : 0;
                n = strcspn(part, ".");
                if (n == n_last && memcmp(part, last, n) == 0)
                        continue;
                last = part;
                n_last = n;
                if (n_known < sizeof(known))
                        n_known += (size_t)snprintf(known + n_known, sizeof(known) - n_known, " %.*s", (int)n, part);
        }
        return rv_config_fail(p, node->key_line, "unknown key \"%.100s\"%s%.*s; known%s:%s", node->key, n_prefix ? " in " : "",
                              (int)n_prefix, prefix, n_prefix ? " there" : "", known[0] ? known : " nothing");
}

static int bad_key(struct rv_config_parser *p, const struct rv_config_key *key, const struct rv_yaml_node *node,
        const char *why)
{
        return rv_config_fail(p, node->key_line, "%s: \"%.100s\" has to be %s", key->path, node->key, why);
}

static int check_runtime(
        struct rv_config_parser *p, const struct rv_yaml_node *node, struct rv_config_runtime *runtime, bool is_host)
{
        bool is_hosts = runtime->root && strcmp(runtime->root, "host") == 0;

        if (is_host && (!is_hosts || runtime->image))
                return rv_config_fail(p, node->key_line, "the runtime `host` is the host's own; give a runtime with another root another name");
        if (runtime->root && runtime->image)
                return rv_config_fail(p, node->key_line, "runtime \"%s\" has a root and an image; give one of them", runtime->name);
        if (!runtime->root && !runtime->image)
                return rv_config_fail(p, node->key_line, "runtime \"%s\" has no root; give the directory of its root file system, or `host`, or an image",
                                      runtime->name);
        if (is_hosts && runtime->digest)
                return rv_config_fail(p, node->key_line, "runtime \"%s\" is the host's own files, which have no digest; remove it", runtime->name);
        if (runtime->image)
                runtime->root = "";
        return 0;
}

static int take_runtime(struct rv_config_parser *p, const struct rv_config_key *key, const struct rv_yaml_node *node)
{
        const char *why = rv_config_check_name(node->key);
        struct rv_config_runtime *runtime;
        bool is_host = strcmp(node->key, "host") == 0;
        int r;

        if (why)
                return bad_key(p, key, node, why);
        runtime = is_host ? &p->config->runtimes[0] : &p->config->runtimes[p->config->n_runtimes++];
        runtime->name = rv_arena_strdup(&p->config->arena, node->key);
        if (!runtime->name)
                return rv_config_fail_memory(p);
        p->place[RV_CONFIG_IN_RUNTIME] = runtime;
        r = rv_config_set_defaults(p, RV_CONFIG_IN_RUNTIME);
        if (r == 0)
                r = take_mapping(p, node, key->path, strlen(key->path));
        if (r < 0)
                return r;
        return check_runtime(p, node, runtime, is_host);
}

static int take_tenant(struct rv_config_parser *p, const struct rv_config_key *key, const struct rv_yaml_node *node)
{
        struct rv_config_tenant *tenant = &p->config->tenants[p->config->n_tenants];
        const char *why = rv_config_check_name(node->key);
        int r;

        if (why)
                return bad_key(p, key, node, why);
        tenant->name = rv_arena_strdup(&p->config->arena, node->key);
        if (!tenant->name)
                return rv_config_fail_memory(p);
        p->config->n_tenants++;
        p->place[RV_CONFIG_IN_TENANT] = tenant;
        r = rv_config_set_defaults(p, RV_CONFIG_IN_TENANT);
        return r < 0 ? r : take_mapping(p, node, key->path, strlen(key->path));
}

static int take_registry(struct rv_config_parser *p, const struct rv_config_key *key, const struct rv_yaml_node *node)
{
        struct rv_config_registries *all = (void *)((char *)p->place[key->place.in] + key->place.offset);
        const char *why = rv_config_check_language(node->key);
        struct rv_config_registry *registry;

        if (why)
                return bad_key(p, key, node, why);
        if (!all->items)
                all->items = rv_arena_array(&p->config->arena, 2, sizeof(*all->items));   /* a language each, no key twice */
        if (!all->items)
                return rv_config_fail_memory(p);
        registry = &all->items[all->n_items];
        registry->language = rv_arena_strdup(&p->config->arena, node->key);
        if (!registry->language)
                return rv_config_fail_memory(p);
        all->n_items++;
        p->place[RV_CONFIG_IN_REGISTRY] = registry;
        return take_mapping(p, node, key->path, strlen(key->path));
}

static int take_key(struct rv_config_parser *p, const struct rv_config_key *key, const struct rv_yaml_node *node)
{
        switch (key->type) {
        case RV_CONFIG_EACH_RUNTIME:
                return take_runtime(p, key, node);
        case RV_CONFIG_EACH_TENANT:
                return take_tenant(p, key, node);
        case RV_CONFIG_EACH_REGISTRY:
                return take_registry(p, key, node);
        default:
                return rv_config_set_value(p, key, node);
        }
}

/* Makes room for the elements of a mapping that becomes an array; notes where one stands that is told of later. */
static int make_room(struct rv_config_parser *p, const struct rv_yaml_node *node, const char *path, size_t n_path)
{
        struct rv_config *c = p->config;

        if (n_path == strlen("tenants") && memcmp(path, "tenants", n_path) == 0) {
                if (!node->n_children)
                        return rv_config_fail(p, node->line, "tenants names nobody, so nothing could run; add one or remove the key");
                c->tenants = rv_arena_array(&c->arena, node->n_children, sizeof(*c->tenants));
                return c->tenants ? 0 : rv_config_fail_memory(p);
        }
        if (n_path == strlen("runtimes") && memcmp(path, "runtimes", n_path) == 0) {
                struct rv_config_runtime *all = rv_arena_array(&c->arena, node->n_children + 1, sizeof(*all));

                if (!all)
                        return rv_config_fail_memory(p);
                all[0] = c->runtimes[0];
                c->runtimes = all;
        }
        if (n_path == strlen("audit.sink") && memcmp(path, "audit.sink", n_path) == 0)
                c->audit.sink.line = node->line;
        return 0;
}

static int take_mapping(struct rv_config_parser *p, const struct rv_yaml_node *node, const char *prefix,
        size_t n_prefix)
{
        int r;

        if (node->kind != RV_YAML_MAPPING && node->kind != RV_YAML_NULL)
                return rv_config_fail(p, node->line, "%.*s%s needs a mapping, not %s", (int)n_prefix, prefix,
                                      n_prefix ? "" : "the configuration", rv_yaml_kind_text(node->kind));
        r = make_room(p, node, prefix, n_prefix);
        for (const struct rv_yaml_node *c = node->child; c && r == 0; c = c->next) {
                const struct rv_config_key *key;
                size_t n;

                key = find_key(prefix, n_prefix, c->key, &n);
                if (!key)
                        r = refuse_unknown(p, c, prefix, n_prefix);
                else if (key->path[n] == 0)
                        r = take_key(p, key, c);
                else
                        r = take_mapping(p, c, key->path, n);
        }
        return r;
}

/* What is there without being written: the runtime `host`, of which the file can change members. */
static int set_built_in(struct rv_config_parser *p)
{
        struct rv_config *c = p->config;

        c->runtimes = rv_arena_array(&c->arena, 1, sizeof(*c->runtimes));
        if (!c->runtimes)
                return rv_config_fail_memory(p);
        c->n_runtimes = 1;
        c->runtimes[0].name = c->runtimes[0].root = "host";
        p->place[RV_CONFIG_IN_ROOT] = c;
        p->place[RV_CONFIG_IN_RUNTIME] = &c->runtimes[0];
        if (rv_config_set_defaults(p, RV_CONFIG_IN_ROOT) < 0 || rv_config_set_defaults(p, RV_CONFIG_IN_RUNTIME) < 0)
                return -ENOMEM;
        return 0;
}

static int set_state_dir(struct rv_config_parser *p)
{
        const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
        char path[4096];
        int n;

        if (geteuid() == 0)
                n = snprintf(path, sizeof(path), "%s", STATE_AS_ROOT);
        else if (state && state[0] == '/')
                n = snprintf(path, sizeof(path), "%s/reeve", state);
        else if (home && home[0] == '/')
                n = snprintf(path, sizeof(path), "%s/.local/state/reeve", home);
        else
                return rv_error_set(p->err, rv_raise(-EINVAL),
                                    "no directory for records: neither HOME nor XDG_STATE_HOME is an absolute path; set one, or state_dir in reeve.yaml");
        if (n < 0 || (size_t)n >= sizeof(path) || rv_config_check_path(path))
                return rv_error_set(p->err, rv_raise(-EINVAL),
                                    "no directory for records: HOME or XDG_STATE_HOME is no usable path; correct it, or set state_dir in reeve.yaml");
        p->config->state_dir = rv_arena_strdup(&p->config->arena, path);
        return p->config->state_dir ? 0 : rv_config_fail_memory(p);
}

static int check_sink(struct rv_config_parser *p)
{
        const struct rv_config_sink *sink = &p->config->audit.sink;

        if (sink->line && !sink->to)
                return rv_config_fail(p, sink->line, "audit.sink needs `to`, or nothing would go anywhere; add it, or remove audit.sink");
        if (sink->to && strncmp(sink->to, "https:", 6) != 0 && (sink->ca || sink->header_file))
                return rv_config_fail(p, sink->line, "audit.sink.ca and header_file are for an https address; remove them");
        return 0;
}

/* What only the whole file shows. */
static int finish(struct rv_config_parser *p)
{
        struct rv_config *c = p->config;

        if (!c->tenants) {
                c->tenants = rv_arena_array(&c->arena, 1, sizeof(*c->tenants));
                if (!c->tenants)
                        return rv_config_fail_memory(p);
                c->n_tenants = 1;
                c->tenants[0].name = "local";
                p->place[RV_CONFIG_IN_TENANT] = &c->tenants[0];
                if (rv_config_set_defaults(p, RV_CONFIG_IN_TENANT) < 0)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < c->n_tenants; i++)
                if (!rv_config_runtime(c, c->tenants[i].runtime))
                        return rv_config_fail(p, c->tenants[i].runtime_line,
                                              "tenant \"%s\" names the runtime \"%s\", which is not under runtimes; define it there",
                                              c->tenants[i].name, c->tenants[i].runtime);
        if (check_sink(p) < 0)
                return -EINVAL;
        return c->state_dir ? 0 : set_state_dir(p);
}

/* The absolute directory of @file, or NULL where that cannot be told. */
static char *directory_of(const char *file)
{
        const char *slash = strrchr(file, '/');
        char here[4096], *path = NULL;

        if (file[0] == '/')
                return strndup(file, slash == file ? 1 : (size_t)(slash - file));
        if (!*file || !getcwd(here, sizeof(here)))
                return NULL;
        if (!slash)
                return strdup(here);
        return asprintf(&path, "%s/%.*s", here, (int)(slash - file), file) < 0 ? NULL : path;
}

int rv_config_parse(const char *text, size_t n, const char *file, struct rv_config **ret, struct rv_error *err)
{
        _cleanup_(rv_config_freep) struct rv_config *config = NULL;
        _cleanup_(rv_freep) char *directory = NULL;
        _cleanup_(rv_arena_fini) struct rv_arena nodes = { 0 };
        struct rv_config_parser p = { .err = err };
        struct rv_yaml_node *root;
        int r;

        if (n > RV_CONFIG_BYTES_MAX)
                return rv_error_set(err, rv_raise(-EFBIG), "%s: larger than %zu bytes", file, RV_CONFIG_BYTES_MAX);
        config = calloc(1, sizeof(*config));
        if (!config)
                return rv_error_set(err, rv_raise(-ENOMEM), "%s: out of memory", file);
        p.config = config;
        p.directory = directory = directory_of(file);
        config->file = rv_arena_strdup(&config->arena, file);
        config->text = rv_arena_strndup(&config->arena, text, n);
        config->text_bytes = n;
        if (!config->file || !config->text)
                return rv_error_set(err, rv_raise(-ENOMEM), "%s: out of memory", file);
        r = set_built_in(&p);
        if (r == 0 && *file) {
                r = rv_yaml_read(&nodes, config->text, n, file, &root, err);
                if (r == 0)
                        r = take_mapping(&p, root, "", 0);
        }
        if (r == 0)
                r = finish(&p);
        if (r < 0)
                return rv_trace(r);
        *ret = rv_take(&config);
        return 0;
}
