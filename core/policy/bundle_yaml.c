#include "policy/bundle_files.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

struct reading {
        yaml_parser_t parser;
        struct rv_bundle *bundle;
        const char *path;
        unsigned seen;   /* bit per key, so that one given twice is an error */
        struct rv_error *err;
};

static const char key_names[] = "name, version, description";

static int fault(struct reading *r, const yaml_event_t *event, const char *text)
{
        size_t line = event ? event->start_mark.line + 1 : r->parser.problem_mark.line + 1;

        return rv_error_set(r->err, rv_raise(-EINVAL), "%s:%zu: %s", r->path, line, text);
}

static int next(struct reading *r, yaml_event_t *event)
{
        if (yaml_parser_parse(&r->parser, event))
                return 0;
        if (r->parser.error == YAML_MEMORY_ERROR)
                return rv_raise(-ENOMEM);
        return fault(r, NULL, r->parser.problem ? r->parser.problem : "not YAML");
}

static int store(struct reading *r, const char *key, const yaml_event_t *value)
{
        const struct {
                const char *key;
                char *where;
                size_t max;
        } table[] = {
                { "name", r->bundle->name, RV_BUNDLE_NAME_MAX },
                { "version", r->bundle->version, RV_BUNDLE_NAME_MAX },
                { "description", r->bundle->description, RV_BUNDLE_DESCRIPTION_MAX },
        };
        char text[160];

        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++) {
                if (strcmp(key, table[i].key) != 0)
                        continue;
                if (r->seen & 1u << i) {
                        snprintf(text, sizeof(text), "%s is given twice", key);
                        return fault(r, value, text);
                }
                r->seen |= 1u << i;
                if (value->type != YAML_SCALAR_EVENT || value->data.scalar.length > table[i].max ||
                        strlen((const char *)value->data.scalar.value) != value->data.scalar.length) {
                        snprintf(text, sizeof(text), "%s is text of at most %zu bytes", key, table[i].max);
                        return fault(r, value, text);
                }
                memcpy(table[i].where, value->data.scalar.value, value->data.scalar.length + 1);
                return 0;
        }
        snprintf(text, sizeof(text), "unknown key '%.40s'; there are %s", key, key_names);
        return fault(r, value, text);
}

static int read_pair(struct reading *r, const yaml_event_t *key)
{
        char name[64];
        yaml_event_t value;
        int n;

        if (key->type != YAML_SCALAR_EVENT)
                return fault(r, key, "a bundle.yaml is a mapping of name, version and description to text");
        snprintf(name, sizeof(name), "%s", (const char *)key->data.scalar.value);
        n = next(r, &value);
        if (n < 0)
                return rv_trace(n);
        n = store(r, name, &value);
        yaml_event_delete(&value);
        return rv_trace(n);
}

/* The events of a file that is one mapping: stream, document, mapping, pairs, and their ends. */
static int read_events(struct reading *r)
{
        static const yaml_event_type_t opening[] = { YAML_STREAM_START_EVENT, YAML_DOCUMENT_START_EVENT,
                YAML_MAPPING_START_EVENT };
        size_t i = 0;

        for (;;) {
                yaml_event_t event;
                bool is_end = false;
                int n = next(r, &event);

                if (n < 0)
                        return rv_trace(n);
                if (i == 1 && event.type == YAML_STREAM_END_EVENT)
                        is_end = true;   /* an empty file says nothing, and may */
                else if (i < RV_N_ELEMENTS(opening))
                        n = event.type == opening[i++] ? 0 : fault(r, &event, "a bundle.yaml is one mapping");
                else if (event.type == YAML_MAPPING_END_EVENT || event.type == YAML_DOCUMENT_END_EVENT)
                        n = 0;
                else if (event.type == YAML_STREAM_END_EVENT)
                        is_end = true;
                else if (event.type == YAML_DOCUMENT_START_EVENT)
                        n = fault(r, &event, "a second document");
                else
                        n = read_pair(r, &event);
                yaml_event_delete(&event);
                if (n < 0 || is_end)
                        return rv_trace(n);
        }
}

int rv_bundle_read_yaml(struct rv_bundle *b, const char *path, const char *text, size_t n, struct rv_error *err)
{
        struct reading r = { .bundle = b, .path = path, .err = err };
        int result;

        if (!rv_utf8_check(text, n, NULL))
                return rv_error_set(err, rv_raise(-EINVAL), "%s:1: not UTF-8", path);
        if (!yaml_parser_initialize(&r.parser))
                return rv_raise(-ENOMEM);
        yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
        result = read_events(&r);
        yaml_parser_delete(&r.parser);
        return rv_trace(result);
}
