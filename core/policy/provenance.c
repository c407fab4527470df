#include "policy/provenance.h"

#include "policy/engine.h"

/* The names and behaviour that policy finds in its environment; counts up when either changes. */
#define SANDBOX_PROFILE "1"

json_t *rv_policy_engine(void)
{
        return json_pack("{s:s, s:s, s:s, s:{s:i, s:i, s:i}}", "reeve", RV_VERSION, "lua", LUA_RELEASE, "sandbox", SANDBOX_PROFILE,
                         "limits", "load_instructions", RV_ENGINE_LOAD_BUDGET, "item_instructions", RV_ENGINE_ITEM_BUDGET,
                         "memory_bytes", RV_ENGINE_MEMORY_MAX);
}
