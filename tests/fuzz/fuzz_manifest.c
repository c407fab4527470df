/* A layer's manifest: its paths stay within the tree, stand in order and are found; a refusal can be shown to a person. */
#include "fuzz.h"

#include "store/layer_manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rv_manifest m = { 0 };
        struct rv_error err = { 0 };
        int r = rv_manifest_read((const char *)data, size, &m, &err);

        FUZZ_CHECK(r == 0 || (r == -EINVAL && err.message[0]), "%d", r);
        for (const char *p = err.message; *p; p++)
                FUZZ_CHECK((uint8_t)*p >= 0x20 && *p != 0x7f, "%s", err.message);
        for (size_t i = 0; i < m.n; i++) {
                const struct rv_manifest_entry *e = &m.entries[i];

                FUZZ_CHECK(*e->path && *e->path != '/' && strcmp(e->path, "..") && strncmp(e->path, "../", 3) && !strstr(e->path, "/../") && !strstr(e->path, "//"), "%s", e->path);
                FUZZ_CHECK(i == 0 || strcmp(m.entries[i - 1].path, e->path) < 0);
                FUZZ_CHECK(rv_manifest_find(&m, e->path) == e);
                FUZZ_CHECK(e->mode <= 0777 && (e->type != RV_MANIFEST_FILE || strlen(e->sha256) == 64) &&
                        (e->type != RV_MANIFEST_LINK || e->target));
        }
        rv_manifest_fini(&m);
        return 0;
}
