#include "base/config_value.h"

#include "base/pointer.h"

#include <string.h>

/* What of a record may be hidden. The rest says which record it is, of what, and how it can be checked. */
static const struct {
        const char *name;
        bool is_whole;          /* all of it at once, too */
} roots[] = {
        { "tenant", true }, { "principal", true }, { "request_id", true }, { "trace_id", true }, { "source", true }, { "env", true },
        { "stdin", true }, { "request", true }, { "errors", true }, { "facts", false }, { "verdict", false }, { "shadow", false },
};

/* What the next reeve needs of a decision whose owner died, and what says which policy judged. */
static const char *const needed[] = {
        "/facts/stage", "/facts/request/network_mode", "/facts/request/timeout_s", "/facts/request/memory_mib",
        "/verdict/effect", "/verdict/code", "/verdict/limits", "/shadow/bundle", "/shadow/verdict_sha256",
};

const char *rv_config_check_redact(const char *text)
{
        struct rv_pointer p, q;
        bool is_known = false;

        if (rv_pointer_read(text, &p) < 0)
                return "JSON pointers of at most 255 bytes and 16 parts, such as `/principal` or `/facts/packages/*/name`";
        for (size_t i = 0; i < RV_N_ELEMENTS(roots) && !is_known; i++)
                is_known = !p.is_any[0] && strcmp(rv_pointer_part(&p, 0), roots[i].name) == 0 &&
                        (roots[i].is_whole || p.n > 1);
        if (!is_known)
                return "pointers to `/tenant /principal /request_id /trace_id /source /env /stdin /request /errors` and to what is in them or in `/facts /verdict /shadow`; the rest says which record it is";
        for (size_t i = 0; i < RV_N_ELEMENTS(needed); i++)
                if (rv_pointer_read(needed[i], &q) == 0 && rv_pointer_meets(&p, &q))
                        return "pointers that leave alone what recovery and replay read: `/facts/stage`, `network_mode timeout_s memory_mib` in `/facts/request`, `effect code limits` in `/verdict`, `bundle verdict_sha256` in `/shadow`, and all that they are in";
        return NULL;
}
