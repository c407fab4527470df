#include "egress/evidence_read.h"

#include <string.h>

#define DEPTH_MAX 3
#define INTEGER_MAX INT64_C(9007199254740991)   /* 2^53 - 1: what a record can hold */

enum type { TEXT, PORT, COUNT };

struct member {
        const char *name;
        enum type type;
};

static const struct member contact[] = { { "name", TEXT }, { "address", TEXT }, { "port", PORT }, { "protocol", TEXT },
                                         { "connections", COUNT }, { "bytes_out", COUNT }, { "bytes_in", COUNT } };
static const struct member denial[] = { { "name", TEXT }, { "address", TEXT }, { "port", PORT }, { "protocol", TEXT },
                                        { "rule", TEXT }, { "count", COUNT } };

static int fail(struct rv_error *err, const char *list, const char *what)
{
        return rv_error_set(err, rv_raise(-EINVAL), "%s: %s", list, what);
}

static bool is_count(const json_t *value)
{
        return json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) <= INTEGER_MAX;
}

static bool is_plain(const json_t *value)
{
        const char *text = json_string_value(value);

        if (!text || json_string_length(value) > RV_NETWORK_TEXT_MAX || strlen(text) != json_string_length(value))
                return false;
        for (; *text; text++)
                if (*text < 0x20 || *text > 0x7e)
                        return false;
        return true;
}

static bool is_of(const json_t *value, enum type type)
{
        switch (type) {
        case TEXT:
                return is_plain(value);
        case PORT:
                return is_count(value) && json_integer_value(value) <= UINT16_MAX;
        default:
                return is_count(value);
        }
}

static int check_list(
        const json_t *list, const char *name, const struct member *members, size_t n, struct rv_error *err)
{
        const json_t *entry;
        size_t i;

        if (!json_is_array(list) || json_array_size(list) > RV_NETWORK_LIST_MAX)
                return fail(err, name, "has to be a list of at most 256");
        json_array_foreach(list, i, entry) {
                if (json_object_size(entry) != n)
                        return fail(err, name, "an entry has other members than it has to have");
                for (size_t m = 0; m < n; m++)
                        if (!is_of(json_object_get(entry, members[m].name), members[m].type))
                                return fail(err, name, members[m].name);
        }
        return 0;
}

int rv_network_evidence_read(const char *text, size_t n, struct rv_network_evidence *ret, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *root = NULL;
        const json_t *more_contacts, *more_denials;
        json_t *contacts, *denials;
        int r;

        if (n > RV_NETWORK_EVIDENCE_BYTES_MAX)
                return fail(err, "evidence", "is too long");
        r = rv_json_read(text, n, DEPTH_MAX, &root, err);
        if (r < 0)
                return r == -ELOOP ? fail(err, "evidence", "is nested too deep") : rv_trace(r);
        contacts = json_object_get(root, "contacts");
        denials = json_object_get(root, "denials");
        more_contacts = json_object_get(root, "more_contacts");
        more_denials = json_object_get(root, "more_denials");
        if (json_object_size(root) != 4 || !is_count(more_contacts) || !is_count(more_denials))
                return fail(err, "evidence", "has other members than it has to have");
        r = check_list(contacts, "contacts", contact, RV_N_ELEMENTS(contact), err);
        if (r == 0)
                r = check_list(denials, "denials", denial, RV_N_ELEMENTS(denial), err);
        if (r < 0)
                return rv_trace(r);
        *ret = (struct rv_network_evidence){ .contacts = json_incref(contacts), .denials = json_incref(denials),
                                             .n_more_contacts = (uint64_t)json_integer_value(more_contacts),
                                             .n_more_denials = (uint64_t)json_integer_value(more_denials) };
        return 0;
}

void rv_network_evidence_fini(struct rv_network_evidence *evidence)
{
        json_decref(evidence->contacts);
        json_decref(evidence->denials);
        *evidence = (struct rv_network_evidence){ 0 };
}
