/* What reeve-unpack answers to a scan: it has read hostile bytes, so its word has to have a form. */
#include "fuzz.h"

#include "package/unpack.h"

static void check_text(const json_t *o, const char *name)
{
        const char *text = json_string_value(json_object_get(o, name));

        FUZZ_CHECK(text && (!*text || fuzz_is_line(text)) && strlen(text) <= RV_UNPACK_TEXT_MAX, "%s", name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *job = json_pack("{s:s, s:[{s:s}, {s:s}]}", "language", "python", "artifacts", "file", "a", "file", "b"), *result = NULL, *one;
        struct rv_error err = { 0 };
        int r = rv_unpack_scan_check(job, (const char *)data, size, &result, &err);
        size_t i;

        FUZZ_CHECK(r == 0 || ((r == -EPROTO || r == -ENOMEM) && fuzz_is_line(err.message) && !result), "%d", r);
        if (r == 0)
                FUZZ_CHECK(json_array_size(json_object_get(result, "artifacts")) == 2);
        json_array_foreach(json_object_get(result, "artifacts"), i, one) {
                const json_t *fault = json_object_get(one, "fault");

                FUZZ_CHECK(strcmp(rv_json_get_string(one, "file", ""), i ? "b" : "a") == 0);
                check_text(one, "sha256");
                if (fault)
                        check_text(fault, "text");
                else
                        check_text(one, "license");
        }
        json_decref(result);
        json_decref(job);
        return 0;
}
