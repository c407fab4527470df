#include "request/bounds.h"

#include <stdio.h>

/* jansson's *_new calls take NULL for an object or a value and then fail, so one check of the result is enough. */
static json_t *describe(json_t *schema, enum rv_bound_id id)
{
        if (json_object_set_new(schema, "description", json_string(rv_bounds[id].text)) < 0) {
                json_decref(schema);
                return NULL;
        }
        return schema;
}

static json_t *string_schema(enum rv_bound_id id, const char *pattern)
{
        const struct rv_bound *b = &rv_bounds[id];
        json_t *o = json_pack("{s:s, s:I, s:I}", "type", "string", "minLength", (json_int_t)b->minimum, "maxLength",
                              (json_int_t)b->maximum);

        /* Not by "s*" of json_pack(), which leaves out what it has no memory for. */
        if (pattern && json_object_set_new(o, "pattern", json_string(pattern)) < 0) {
                json_decref(o);
                return NULL;
        }
        return describe(o, id);
}

static json_t *integer_schema(enum rv_bound_id id)
{
        const struct rv_bound *b = &rv_bounds[id];

        return describe(json_pack("{s:s, s:I, s:I, s:I}", "type", "integer", "minimum", (json_int_t)b->minimum,
                                  "maximum", (json_int_t)b->maximum, "default", (json_int_t)b->otherwise), id);
}

static json_t *list_schema(enum rv_bound_id id, json_t *items)
{
        const struct rv_bound *b = &rv_bounds[id];

        return describe(json_pack("{s:s, s:I, s:I, s:o}", "type", "array", "minItems", (json_int_t)b->minimum,
                                  "maxItems", (json_int_t)b->maximum, "items", items), id);
}

static json_t *env_schema(void)
{
        const struct rv_bound *b = &rv_bounds[RV_BOUND_ID_env], *all = &rv_bounds[RV_BOUND_ID_env_bytes];
        char text[256];

        snprintf(text, sizeof(text), "%s; in all at most %lld %s (%s)", b->text, (long long)all->maximum, all->unit,
                 all->text);
        return json_pack("{s:s, s:I, s:I, s:{s:s}, s:{s:s, s:s}, s:s}", "type", "object", "minProperties",
                         (json_int_t)b->minimum, "maxProperties", (json_int_t)b->maximum, "propertyNames", "pattern",
                         RV_BOUND_ENV_NAME_PATTERN, "additionalProperties", "type", "string", "pattern",
                         RV_BOUND_NO_NUL_PATTERN, "description", text);
}

static json_t *network_schema(void)
{
        json_t *domains = list_schema(RV_BOUND_ID_domains, string_schema(RV_BOUND_ID_domain, NULL));
        json_t *plain, *named;

        plain = json_pack("{s:{s:{s:[s,s,s]}}, s:[s], s:b}", "properties", "mode", "enum", "none", "registries", "any",
                          "required", "mode", "additionalProperties", 0);
        named = json_pack("{s:{s:{s:s}, s:o}, s:[s,s], s:b}", "properties", "mode", "const", "domains", "domains",
                          domains, "required", "mode", "domains", "additionalProperties", 0);
        return describe(json_pack("{s:s, s:[o,o], s:{s:s}}", "type", "object", "oneOf", plain, named, "default",
                                  "mode", "none"), RV_BOUND_ID_network);
}

static json_t *properties(void)
{
        json_t *o = json_object();
        int r = 0;

        r |= json_object_set_new(o, "language", describe(json_pack("{s:[s,s]}", "enum", "python", "javascript"),
                                                         RV_BOUND_ID_language));
        r |= json_object_set_new(o, "source", string_schema(RV_BOUND_ID_source, RV_BOUND_NO_NUL_PATTERN));
        r |= json_object_set_new(o, "timeout_s", integer_schema(RV_BOUND_ID_timeout_s));
        r |= json_object_set_new(o, "memory_mib", integer_schema(RV_BOUND_ID_memory_mib));
        r |= json_object_set_new(o, "packages", list_schema(RV_BOUND_ID_packages, string_schema(RV_BOUND_ID_package, NULL)));
        r |= json_object_set_new(o, "env", env_schema());
        r |= json_object_set_new(o, "network", network_schema());
        r |= json_object_set_new(o, "idempotency_key", string_schema(RV_BOUND_ID_idempotency_key, RV_BOUND_KEY_PATTERN));
        r |= json_object_set_new(o, "stdin", string_schema(RV_BOUND_ID_input, NULL));
        if (r) {
                json_decref(o);
                return NULL;
        }
        return o;
}

json_t *rv_bounds_schema(void)
{
        return json_pack("{s:s, s:s, s:s, s:s, s:o, s:[s,s], s:b}", "$schema",
                         "https://json-schema.org/draft/2020-12/schema", "$id", "urn:reeve:schema:request:1", "title",
                         "reeve request", "type", "object", "properties", properties(), "required", "language",
                         "source", "additionalProperties", 0);
}
