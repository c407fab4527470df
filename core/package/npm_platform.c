#include "package/npm_lock.h"

#include <string.h>

/* `os`, `cpu` or `libc` of a package: names, or "!name" for all but these; a text is a list of one. */
static bool list_has(const json_t *list, const char *word, size_t n)
{
        size_t n_list = json_is_array(list) ? json_array_size(list) : json_is_string(list), n_not = 0;
        bool is_in = false;

        for (size_t i = 0; i < n_list; i++) {
                const char *text = json_string_value(json_is_array(list) ? json_array_get(list, i) : list);
                bool is_not = text && text[0] == '!';

                if (!text)
                        continue;
                if (n_list == 1 && strcmp(text, "any") == 0)
                        return true;
                text += is_not;
                n_not += is_not;
                if (strlen(text) == n && strncmp(text, word, n) == 0) {
                        if (is_not)
                                return false;
                        is_in = true;
                }
        }
        return is_in || n_not == n_list;
}

bool rv__npm_place_fits(const struct rv__npm_place *place, const char *tag)
{
        static const char *const keys[] = { "os", "cpu", "libc" };
        const char *at = tag + strlen("node-");   /* node-OS-CPU-LIBC */

        for (size_t i = 0; i < RV_N_ELEMENTS(keys); i++) {
                const json_t *list = json_object_get(place->value, keys[i]);
                size_t n = strcspn(at, "-");

                if (list && !json_is_null(list) && !list_has(list, at, n))
                        return false;
                at += n + (at[n] == '-');
        }
        return true;
}
