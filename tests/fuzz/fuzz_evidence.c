/*
 * What the gate tells of a run, which becomes part of its outcome and of the log: whatever is taken has two lists within
 * their bounds, can be written as a record (RFC 8785), and is taken again as it is.
 */
#include "fuzz.h"

#include "egress/evidence_read.h"

static void check_list(const json_t *list)
{
        const json_t *entry, *value;
        const char *name, *text;
        size_t i;

        FUZZ_CHECK(json_is_array(list) && json_array_size(list) <= RV_NETWORK_LIST_MAX);
        json_array_foreach(list, i, entry)
                json_object_foreach((json_t *)entry, name, value) {
                        text = json_string_value(value);
                        FUZZ_CHECK(text ? strlen(text) <= RV_NETWORK_TEXT_MAX : json_integer_value(value) >= 0);
                        FUZZ_CHECK(!text || !*text || fuzz_is_line(text));
                }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rv_network_evidence e = { 0 }, again = { 0 };
        struct rv_error err = { 0 };
        char digest[65], *text;
        json_t *whole;
        int r = rv_network_evidence_read((const char *)data, size, &e, &err);

        FUZZ_CHECK(r == 0 || r == -EINVAL, "%d", r);
        if (r < 0) {
                FUZZ_CHECK(err.message[0] && !e.contacts && !e.denials);
                return 0;
        }
        check_list(e.contacts);
        check_list(e.denials);
        whole = json_pack("{s:O, s:O, s:I, s:I}", "contacts", e.contacts, "denials", e.denials, "more_contacts", (json_int_t)e.n_more_contacts,
                          "more_denials", (json_int_t)e.n_more_denials);
        FUZZ_CHECK(whole && rv_json_canonical_sha256(whole, digest) == 0);
        text = json_dumps(whole, JSON_COMPACT);
        FUZZ_CHECK(text);
        FUZZ_CHECK(rv_network_evidence_read(text, strlen(text), &again, NULL) == 0);
        FUZZ_CHECK(json_equal(again.contacts, e.contacts) && json_equal(again.denials, e.denials));
        free(text);
        json_decref(whole);
        rv_network_evidence_fini(&e);
        rv_network_evidence_fini(&again);
        return 0;
}
