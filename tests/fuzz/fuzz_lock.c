/*
 * A lock: what is taken is written, read again and written the same; every name, file, place and address in it is
 * harmless whoever uses it; a refusal says where, and can be shown to a person.
 */
#include "fuzz.h"

#include "package/lock.h"

static void check_text(const char *text)
{
        for (const char *p = text; *p; p++)
                FUZZ_CHECK((uint8_t)*p >= 0x20 && *p != 0x7f, "%s", text);
}

/* No part that leads upwards, is hidden, or begins like an option. */
static void check_parts(const char *path)
{
        for (const char *part = path; part; part = strchr(part, '/'), part = part ? part + 1 : NULL)
                FUZZ_CHECK(*part && *part != '.' && *part != '/' && (part != path || *part != '-'), "%s", path);
}

static void check_package(const json_t *package)
{
        const char *name = rv_json_get_string(package, "name", ""), *file = rv_json_get_string(package, "file", ""),
                   *url = rv_json_get_string(package, "url", "");
        const json_t *place;
        size_t i;

        check_parts(name);
        check_parts(file);
        FUZZ_CHECK(!strchr(file, '/') && !strchr(file, ' '), "%s", file);
        FUZZ_CHECK((!strncmp(url, "https://", 8) || !strncmp(url, "http://", 7)) && !strpbrk(url, " \t\r\n#"), "%s", url);
        FUZZ_CHECK(strlen(rv_json_get_string(package, "hash", "")) == 71);
        FUZZ_CHECK(rv_json_get_string(package, "version", "")[0] >= '0' && rv_json_get_string(package, "version", "")[0] <= '9');
        check_text(rv_json_get_string(package, "license", ""));
        check_text(rv_json_get_string(package, "requested", ""));
        json_array_foreach(json_object_get(package, "at"), i, place) {
                check_parts(json_string_value(place));
                FUZZ_CHECK(!strncmp(json_string_value(place), "node_modules/", 13));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(rv_json_unrefp) json_t *lock = NULL, *again = NULL, *list = NULL;
        _cleanup_(rv_buf_fini) struct rv_buf first = { 0 }, second = { 0 };
        char digest[RV_SHA256_HEX_SIZE], same[RV_SHA256_HEX_SIZE];
        struct rv_error err = { 0 };
        const json_t *package;
        int r = rv_lock_read((const char *)data, size, &lock, &err);
        size_t i;

        FUZZ_CHECK(r == 0 || r == -EINVAL || r == -ELOOP, "%d", r);
        FUZZ_CHECK(r == 0 || !strncmp(err.message, "lock: ", 6), "%s", err.message);
        check_text(err.message);
        FUZZ_CHECK(rv_utf8_check(err.message, strlen(err.message), NULL));
        if (r < 0)
                return 0;
        FUZZ_CHECK(rv_lock_write(lock, &first) == 0);
        FUZZ_CHECK(rv_lock_read(first.data, first.size, &again, &err) == 0, "%s", err.message);
        FUZZ_CHECK(rv_lock_write(again, &second) == 0 && first.size == second.size &&
                !memcmp(first.data, second.data, first.size));
        FUZZ_CHECK(rv_lock_digest(lock, digest) == 0 && rv_lock_digest(again, same) == 0 && !strcmp(digest, same));
        list = rv_lock_public(lock);
        FUZZ_CHECK(json_array_size(list) == json_array_size(json_object_get(lock, "packages")));
        json_array_foreach(json_object_get(lock, "packages"), i, package)
                check_package(package);
        return 0;
}
