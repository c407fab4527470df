#include "base/config_private.h"

#include <string.h>

static const char *const type_texts[] = {
        [RV_CONFIG_PATH] = "absolute path",
        [RV_CONFIG_UID_RANGE] = "`FIRST-LAST`",
        [RV_CONFIG_EACH_RUNTIME] = "mapping",
        [RV_CONFIG_ROOT] = "`host` or absolute path",
        [RV_CONFIG_EXPOSE] = "list of absolute paths",
        [RV_CONFIG_EACH_TENANT] = "mapping",
        [RV_CONFIG_DIRECTORY] = "path",
        [RV_CONFIG_NAME] = "name",
        [RV_CONFIG_RUNTIME] = "name",
        [RV_CONFIG_NETWORK] = "`none`, `registries`, `domains` or `any`",
        [RV_CONFIG_LABELS] = "mapping of texts",
        [RV_CONFIG_EACH_REGISTRY] = "mapping",
        [RV_CONFIG_URL] = "http(s) address",
        [RV_CONFIG_HOSTS] = "list of hosts or addresses",
        [RV_CONFIG_REFUSED] = "refused",
        [RV_CONFIG_PIDS] = "whole number, 4 to 4194304",
        [RV_CONFIG_CONNECTIONS] = "whole number, 1 to 16384",
        [RV_CONFIG_RATE] = "whole number, 1 to 1000000",
        [RV_CONFIG_NAMES] = "whole number, 1 to 4096",
        [RV_CONFIG_IDLE] = "duration, 100ms to 24h",
        [RV_CONFIG_CPUS] = "number, three decimals",
        [RV_CONFIG_DURATION] = "duration",
        [RV_CONFIG_ADDRESSES] = "mapping of IP addresses",
        [RV_CONFIG_DENIED] = "list of names, addresses, networks",
        [RV_CONFIG_SIZE] = "size",
        [RV_CONFIG_REDACT] = "list of JSON pointers",
        [RV_CONFIG_SEGMENT] = "size, at least `1MiB`",
        [RV_CONFIG_SINK] = "`file:…`, `command:…` or https address",
        [RV_CONFIG_BOOL] = "`true` or `false`",
        [RV_CONFIG_DIGEST] = "`sha256:` and 64 hex digits",
        [RV_CONFIG_BEHIND] = "`wait` or `deny`",
        [RV_CONFIG_RESOLVER] = "`auto`, `uv` or `pip`",
};

/* `tenants.*.policy` as `tenants.<name>.policy`. */
static void write_path(const char *path, struct rv_buf *out)
{
        static const char by_language[] = "registries.";

        for (const char *c = path; *c; c++) {
                if (*c != '*')
                        rv_buf_putc(out, *c);
                else if ((size_t)(c - path) >= strlen(by_language) &&
                         memcmp(c - strlen(by_language), by_language, strlen(by_language)) == 0)
                        rv_buf_puts(out, "<language>");
                else
                        rv_buf_puts(out, "<name>");
        }
}

int rv_config_markdown(struct rv_buf *out)
{
        rv_buf_puts(out, "| key | value | default | meaning |\n|---|---|---|---|\n");
        for (size_t i = 0; i < rv_config_n_keys; i++) {
                const struct rv_config_key *key = &rv_config_keys[i];

                rv_buf_puts(out, "| `");
                write_path(key->path, out);
                rv_buf_printf(out, "` | %s | ", type_texts[key->type]);
                if (key->otherwise)
                        rv_buf_printf(out, "`%s` | ", key->otherwise);
                else
                        rv_buf_puts(out, "| ");
                if (key->type == RV_CONFIG_REFUSED)
                        rv_buf_printf(out, "this build has no %s, so the key is an error |\n", key->text);
                else
                        rv_buf_printf(out, "%s |\n", key->text);
        }
        return rv_buf_error(out);
}
