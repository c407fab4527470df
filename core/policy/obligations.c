#include "policy/obligations.h"

#include "policy/decide.h"

#include <string.h>

static const char *const lists[] = { "require_hash", "source_build" };

static json_t *make_none(void)
{
        return json_pack("{s:{}, s:[], s:[]}", "pins", "require_hash", "source_build");
}

/* Sorted, each once. 1 if it was not there. */
static int add_name(json_t *list, const char *name)
{
        size_t i;

        for (i = 0; i < json_array_size(list); i++) {
                int r = strcmp(json_string_value(json_array_get(list, i)), name);

                if (r == 0)
                        return 0;
                if (r > 0)
                        break;
        }
        return json_array_insert_new(list, i, json_string(name)) < 0 ? rv_raise(-ENOMEM) : 1;
}

static int add_pin(json_t *into, const char *name, json_t *pin)
{
        json_t *pins = json_object_get(into, "pins");

        if (json_object_get(pins, name))
                return 0;
        return json_object_set(pins, name, pin) < 0 ? rv_raise(-ENOMEM) : 1;
}

static int add_newest(json_t *into, json_t *newest)
{
        const json_t *held = json_object_get(into, "newest_published_s");

        if (!json_is_integer(newest) || (held && json_integer_value(held) >= json_integer_value(newest)))
                return 0;
        return json_object_set(into, "newest_published_s", newest) < 0 ? rv_raise(-ENOMEM) : 1;
}

static int add_entry(json_t *into, const json_t *entry)
{
        static const char *const fields[] = { "require_hash", "allow_source_build" };
        const char *name = rv_json_get_string(entry, "item", "");
        int r = 0;

        if (json_is_string(json_object_get(entry, "pin")))
                r = add_pin(into, name, json_object_get(entry, "pin"));
        if (r >= 0)
                r = add_newest(into, json_object_get(entry, "newest_published_s"));
        for (size_t i = 0; i < RV_N_ELEMENTS(fields) && r >= 0; i++)
                if (json_is_true(json_object_get(entry, fields[i])))
                        r = add_name(json_object_get(into, lists[i]), name);
        return r;
}

int rv_policy_obligations(const json_t *verdict, json_t **ret)
{
        _cleanup_(rv_json_unrefp) json_t *obligations = make_none();
        const json_t *entry;
        size_t i;
        int r;

        if (!obligations)
                return rv_raise(-ENOMEM);
        json_array_foreach(json_object_get(verdict, "packages"), i, entry) {
                r = add_entry(obligations, entry);
                if (r < 0)
                        return rv_trace(r);
        }
        *ret = rv_take(&obligations);
        return 0;
}

int rv_policy_obligations_join(json_t *into, const json_t *more, bool *ret_is_new)
{
        bool is_new = false;
        const char *name;
        json_t *pin;
        size_t i;
        int r;

        json_object_foreach(json_object_get(more, "pins"), name, pin) {
                r = add_pin(into, name, pin);
                if (r < 0)
                        return rv_trace(r);
                is_new = is_new || r;
        }
        r = add_newest(into, json_object_get(more, "newest_published_s"));
        if (r < 0)
                return rv_trace(r);
        is_new = is_new || r;
        for (size_t k = 0; k < RV_N_ELEMENTS(lists); k++) {
                const json_t *list = json_object_get(more, lists[k]), *item;

                json_array_foreach((json_t *)list, i, item) {
                        r = add_name(json_object_get(into, lists[k]), json_string_value(item));
                        if (r < 0)
                                return rv_trace(r);
                        is_new = is_new || r;
                }
        }
        if (ret_is_new)
                *ret_is_new = is_new;
        return 0;
}

bool rv_policy_obligations_is_none(const json_t *obligations)
{
        return !json_object_size(json_object_get(obligations, "pins")) &&
                !json_object_get(obligations, "newest_published_s") &&
                !json_array_size(json_object_get(obligations, lists[0])) &&
                !json_array_size(json_object_get(obligations, lists[1]));
}

bool rv_policy_verdict_is_of_obligations(const json_t *verdict)
{
        size_t n_denials = json_array_size(json_object_get(verdict, "denials")), n_unmet = 0, i;
        const json_t *entry;

        json_array_foreach(json_object_get(verdict, "packages"), i, entry)
                n_unmet += json_array_size(json_object_get(entry, "unmet"));
        return !rv_policy_verdict_is_allow(verdict) && n_denials > 0 && n_unmet == n_denials;
}
