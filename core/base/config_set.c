#include "base/config_private.h"

#include "base/config_value.h"

#include <stdio.h>
#include <string.h>

#define PAIRS_MAX 4096u

int rv_config_fail(struct rv_config_parser *p, unsigned line, const char *fmt, ...)
{
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = rv_yaml_vfail(p->config->file, line, p->err, fmt, ap);
        va_end(ap);
        return r;
}

int rv_config_fail_memory(struct rv_config_parser *p)
{
        return rv_error_set(p->err, rv_raise(-ENOMEM), "%s: out of memory", p->config->file);
}

static int refuse(struct rv_config_parser *p, const struct rv_config_key *key, const struct rv_yaml_node *node,
        const char *why)
{
        if (why == rv_config_no_memory)
                return rv_config_fail_memory(p);
        return rv_config_fail(p, node->line, "%s needs %s", key->path, why);
}

static const char *set_text(struct rv_config_parser *p, const char *text, const char *why, const char **ret)
{
        const char *copy;

        if (why)
                return why;
        copy = rv_arena_strdup(&p->config->arena, text);
        if (!copy)
                return rv_config_no_memory;
        *ret = copy;
        return NULL;
}

static const char *set_root(struct rv_config_parser *p, const char *text, const char **ret)
{
        const char *why = NULL;

        if (strcmp(text, "host") != 0 && (rv_config_check_path(text) || !text[strspn(text, "/")]))
                why = "`host`, or an absolute path below `/`";
        return set_text(p, text, why, ret);
}

static const char *set_directory(struct rv_config_parser *p, const char *text, const char **ret)
{
        char path[2 * 4096 + 2];

        if (!*text || strlen(text) > 4095)
                return "the path of a directory";
        if (text[0] == '/')
                return set_text(p, text, rv_config_check_text(text), ret);
        if (!p->directory)
                return "an absolute path, as the directory of the file is unknown";
        snprintf(path, sizeof(path), "%s/%s", p->directory, text);
        return set_text(p, path, rv_config_check_text(path), ret);
}

/* One scalar's text to its field. NULL, or why not (config_value.h). */
static const char *set_scalar(struct rv_config_parser *p, const struct rv_config_key *key, const char *text)
{
        void *field = (char *)p->place[key->place.in] + key->place.offset;

        switch (key->type) {
        case RV_CONFIG_PATH:
                return set_text(p, text, rv_config_check_path(text), field);
        case RV_CONFIG_ROOT:
                return set_root(p, text, field);
        case RV_CONFIG_DIGEST:
                return set_text(p, text, rv_config_check_digest(text), field);
        case RV_CONFIG_DIRECTORY:
                return set_directory(p, text, field);
        case RV_CONFIG_NAME:
        case RV_CONFIG_RUNTIME:
                return set_text(p, text, rv_config_check_name(text), field);
        case RV_CONFIG_NETWORK:
                return set_text(p, text, rv_config_check_network(text), field);
        case RV_CONFIG_URL:
                return set_text(p, text, rv_config_check_url(text), field);
        case RV_CONFIG_DURATION:
                return rv_config_read_duration(text, field);
        case RV_CONFIG_SIZE:
                return rv_config_read_size(text, field);
        case RV_CONFIG_SEGMENT:
                return rv_config_read_segment(text, field);
        case RV_CONFIG_PIDS:
                return rv_config_read_pids(text, field);
        case RV_CONFIG_CONNECTIONS:
                return rv_config_read_connections(text, field);
        case RV_CONFIG_RATE:
                return rv_config_read_rate(text, field);
        case RV_CONFIG_NAMES:
                return rv_config_read_names(text, field);
        case RV_CONFIG_IDLE:
                return rv_config_read_idle(text, field);
        case RV_CONFIG_CPUS:
                return rv_config_read_cpus(text, field);
        case RV_CONFIG_SINK:
                return set_text(p, text, rv_config_check_sink(text), field);
        case RV_CONFIG_BEHIND:
                return set_text(p, text, rv_config_check_behind(text), field);
        case RV_CONFIG_RESOLVER:
                return set_text(p, text, rv_config_check_resolver(text), field);
        case RV_CONFIG_BOOL:
                *(bool *)field = strcmp(text, "true") == 0;
                return NULL;
        case RV_CONFIG_UID_RANGE:
                return rv_config_read_uid_range(text, &p->config->uid_first, &p->config->uid_last);
        default:
                rv_check(!"a key without a scalar");
                return "another type";
        }
}

static bool is_count_key(const struct rv_config_key *key)
{
        return key->type == RV_CONFIG_PIDS || key->type == RV_CONFIG_CONNECTIONS || key->type == RV_CONFIG_RATE ||
                key->type == RV_CONFIG_NAMES;
}

static bool is_number_key(const struct rv_config_key *key)
{
        return is_count_key(key) || key->type == RV_CONFIG_CPUS;
}

/* As the default is written, or as others of its kind are. */
static const char *example_of_unit(const struct rv_config_key *key)
{
        bool has_unit = key->type == RV_CONFIG_DURATION || key->type == RV_CONFIG_IDLE || key->type == RV_CONFIG_SIZE ||
                key->type == RV_CONFIG_SEGMENT;

        return has_unit && !key->otherwise ? "512MiB" : has_unit ? key->otherwise : NULL;
}

static int refuse_kind(struct rv_config_parser *p, const struct rv_config_key *key, const struct rv_yaml_node *node)
{
        const char *cure = "";

        switch (node->kind) {
        case RV_YAML_NULL:
                cure = "; give a value or remove the key";
                break;
        case RV_YAML_INTEGER:
        case RV_YAML_REAL:
                if (example_of_unit(key))
                        return rv_config_fail(p, node->line, "%s needs a unit: write it as `%s` is written", key->path, example_of_unit(key));
                cure = is_number_key(key) || key->type == RV_CONFIG_BOOL ? "" : "; quote it if it is meant as text";
                break;
        case RV_YAML_STRING:
                cure = "; remove the quotes";
                break;
        default:
                break;
        }
        return rv_config_fail(p, node->line, "%s needs %s, not %s%s", key->path,
                              key->type == RV_CONFIG_BOOL ? "true or false" : is_count_key(key) ? "a whole number" : is_number_key(key) ? "a number" : "text",
                              rv_yaml_kind_text(node->kind), cure);
}

static int take_scalar(struct rv_config_parser *p, const struct rv_config_key *key, const struct rv_yaml_node *node)
{
        bool is_fit = is_number_key(key) ? node->kind == RV_YAML_INTEGER : node->kind == RV_YAML_STRING;
        const char *why;

        is_fit |= key->type == RV_CONFIG_CPUS && node->kind == RV_YAML_REAL;
        if (key->type == RV_CONFIG_BOOL)
                is_fit = node->kind == RV_YAML_BOOL;
        if (!is_fit)
                return refuse_kind(p, key, node);
        why = set_scalar(p, key, node->text);
        if (why)
                return refuse(p, key, node, why);
        if (key->type == RV_CONFIG_RUNTIME)
                ((struct rv_config_tenant *)p->place[RV_CONFIG_IN_TENANT])->runtime_line = node->line;
        return 0;
}

static int take_list(struct rv_config_parser *p, const struct rv_config_key *key, const struct rv_yaml_node *node)
{
        struct rv_config_list *list = (void *)((char *)p->place[key->place.in] + key->place.offset);
        const char *why;

        if (node->kind != RV_YAML_SEQUENCE)
                return rv_config_fail(p, node->line, "%s needs a list, not %s", key->path, rv_yaml_kind_text(node->kind));
        list->items = rv_arena_array(&p->config->arena, node->n_children, sizeof(*list->items));
        if (!list->items)
                return rv_config_fail_memory(p);
        for (const struct rv_yaml_node *c = node->child; c; c = c->next) {
                if (c->kind != RV_YAML_STRING)
                        return rv_config_fail(p, c->line, "%s needs a list of texts, not of %s", key->path, rv_yaml_kind_text(c->kind));
                why = key->type == RV_CONFIG_EXPOSE ? rv_config_check_expose(c->text)
                      : key->type == RV_CONFIG_HOSTS ? rv_config_check_host(c->text)
                      : key->type == RV_CONFIG_REDACT ? rv_config_check_redact(c->text)
                                                      : rv_config_check_denied(c->text);
                why = set_text(p, c->text, why, &list->items[list->n_items]);
                if (why)
                        return refuse(p, key, c, why);
                list->n_items++;
        }
        return 0;
}

/* Host names are compared without case and without the root's dot. */
static char *domain_dup(struct rv_config_parser *p, const char *name)
{
        size_t n = strlen(name);
        char *copy = rv_arena_strndup(&p->config->arena, name, n && name[n - 1] == '.' ? n - 1 : n);

        for (char *c = copy; c && *c; c++)
                if (*c >= 'A' && *c <= 'Z')
                        *c = (char)(*c - 'A' + 'a');
        return copy;
}

static int add_pair(struct rv_config_parser *p, const struct rv_config_key *key, const struct rv_yaml_node *node,
                    struct rv_config_pairs *pairs)
{
        struct rv_config_pair *pair = &pairs->items[pairs->n_items];
        bool is_labels = key->type == RV_CONFIG_LABELS;
        const char *why;

        why = is_labels ? rv_config_check_name(node->key) : rv_config_check_domain(node->key);
        if (why)
                return rv_config_fail(p, node->key_line, "%s: \"%.100s\" has to be %s", key->path, node->key, why);
        if (node->kind != RV_YAML_STRING)
                return rv_config_fail(p, node->line, "%s: the value of \"%.100s\" needs text, not %s%s", key->path, node->key,
                                      rv_yaml_kind_text(node->kind), node->text ? "; quote it" : "");
        why = is_labels ? rv_config_check_text(node->text) : rv_config_check_address(node->text);
        why = set_text(p, node->text, why, &pair->value);
        if (why)
                return refuse(p, key, node, why);
        pair->name = is_labels ? rv_arena_strdup(&p->config->arena, node->key) : domain_dup(p, node->key);
        if (!pair->name)
                return rv_config_fail_memory(p);
        /* Names that the text tells apart can be the same domain. */
        for (size_t i = 0; i < pairs->n_items; i++)
                if (strcmp(pairs->items[i].name, pair->name) == 0)
                        return rv_config_fail(p, node->key_line, "%s: \"%s\" stands here twice; remove one", key->path, pair->name);
        pairs->n_items++;
        return 0;
}

static int take_pairs(struct rv_config_parser *p, const struct rv_config_key *key, const struct rv_yaml_node *node)
{
        struct rv_config_pairs *pairs = (void *)((char *)p->place[key->place.in] + key->place.offset);
        int r = 0;

        if (node->kind != RV_YAML_MAPPING)
                return rv_config_fail(p, node->line, "%s needs a mapping, not %s", key->path, rv_yaml_kind_text(node->kind));
        if (node->n_children > PAIRS_MAX)
                return rv_config_fail(p, node->line, "%s has more than %u entries", key->path, PAIRS_MAX);
        pairs->items = rv_arena_array(&p->config->arena, node->n_children, sizeof(*pairs->items));
        if (!pairs->items)
                return rv_config_fail_memory(p);
        for (const struct rv_yaml_node *c = node->child; c && r == 0; c = c->next)
                r = add_pair(p, key, c, pairs);
        return r;
}

int rv_config_set_defaults(struct rv_config_parser *p, enum rv_config_in in)
{
        for (size_t i = 0; i < rv_config_n_keys; i++) {
                const struct rv_config_key *key = &rv_config_keys[i];
                const char *why;

                if (key->place.in != in || !key->otherwise)
                        continue;
                why = set_scalar(p, key, key->otherwise);
                if (why == rv_config_no_memory)
                        return rv_config_fail_memory(p);
                rv_require(!why);   /* the table contradicts itself */
        }
        return 0;
}

int rv_config_set_value(struct rv_config_parser *p, const struct rv_config_key *key, const struct rv_yaml_node *node)
{
        switch (key->type) {
        case RV_CONFIG_REFUSED:
                return rv_config_fail(p, node->key_line, "%s: this build has no %s; remove the key", key->path, key->text);
        case RV_CONFIG_EXPOSE:
        case RV_CONFIG_HOSTS:
        case RV_CONFIG_DENIED:
        case RV_CONFIG_REDACT:
                return take_list(p, key, node);
        case RV_CONFIG_LABELS:
        case RV_CONFIG_ADDRESSES:
                return take_pairs(p, key, node);
        default:
                return take_scalar(p, key, node);
        }
}
