local t = require("tap")
local p = require("fake.policy").load(".")

local v = p:decide { language = "python" }
t.is(v.effect, "allow", "a plain run is allowed")
t.is(v.code, "ok", "its code is ok")
t.is(v.backend.use, "tenant", "the tenant's backend is used")
t.is(v.idempotency.require_key, false, "no key is required")

v = p:decide { language = "python", packages = { "six>=1", "numpy==1.26.4" } }
t.is(v.effect, "allow", "packages are allowed, pinned or not")
t.is(#v.packages, 2, "each package is judged")
t.is(v.packages[1].rule, "default", "by the default")

v = p:decide { language = "javascript", packages = { "lodash@^4" }, network = { mode = "any" } }
t.is(v.effect, "allow", "open network access is allowed")

v = p:decide { language = "python", network = { mode = "domains", domains = { "a.example", "b.example" } } }
t.is(v.effect, "allow", "named domains are allowed")
t.is(#v.network, 2, "each domain is judged")

v = p:decide { language = "python", timeout_s = 300, memory_mib = 2048 }
t.is(v.effect, "allow", "the largest limits are allowed")
t.is(v.limits.timeout_s, 300, "the time limit is not lowered")
t.is(v.limits.memory_mib, 2048, "the memory limit is not lowered")

t.done()
