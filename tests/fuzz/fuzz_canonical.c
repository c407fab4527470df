/*
 * Canonical JSON, read: what is taken is what would be written, byte for byte, and jansson reads the same value; what
 * jansson reads and what would be written as it is, is taken. An object's members are found where they lie, and reading
 * them with a cache changes nothing.
 */
#include "fuzz.h"

#include "base/canonical.h"

#define DEPTH 16

static struct rv_canonical_cache cache;

/* Is it what the writer would write? U+0000 in a name is nothing that either can hold. */
static bool is_written(const json_t *value, const uint8_t *data, size_t size)
{
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };

        return rv_json_canonical(value, &out) == 0 && out.size == size && memcmp(out.data, data, size) == 0;
}

static void check_members(const json_t *value, const char *text, size_t n)
{
        struct rv_canonical_object o;
        struct rv_span name, span, again;
        size_t n_members = 0;
        int r;

        rv_canonical_open(&o, text, n);
        while ((r = rv_canonical_next(&o, &name)) > 0) {
                struct rv_canonical_object other = o;
                json_t *member = NULL;

                n_members++;
                FUZZ_CHECK(rv_canonical_take(&o, DEPTH, &cache, &member, &span) == 0);
                FUZZ_CHECK(rv_canonical_skip(&other, &again) == 0 && again.text == span.text && again.n == span.n);
                FUZZ_CHECK(is_written(member, (const uint8_t *)span.text, span.n));
                json_decref(member);
        }
        FUZZ_CHECK(r == 0 && n_members == json_object_size(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char *text = (const char *)data;
        json_t *value = NULL, *theirs;
        struct rv_canonical_object o;
        struct rv_span name;
        int r = rv_canonical_read(text, size, DEPTH, &value);

        theirs = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (r == 0) {
                FUZZ_CHECK(is_written(value, data, size));
                FUZZ_CHECK(theirs && json_equal(value, theirs));
                FUZZ_CHECK(!rv_json_is_deeper(value, DEPTH));
                if (json_is_object(value))
                        check_members(value, text, size);
        } else {
                FUZZ_CHECK(r == -EINVAL || r == -ELOOP);
                FUZZ_CHECK(!theirs || rv_json_is_deeper(theirs, DEPTH) || !is_written(theirs, data, size), "refused: %d", r);
                rv_canonical_open(&o, text, size);
                while (rv_canonical_next(&o, &name) > 0)
                        FUZZ_CHECK(name.text >= text && name.text + name.n <= text + size);
        }
        json_decref(value);
        json_decref(theirs);
        rv_canonical_cache_fini(&cache);
        return 0;
}
