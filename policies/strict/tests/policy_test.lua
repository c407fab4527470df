local t = require("tap")
local p = require("fake.policy").load(".")

local v = p:decide { language = "python" }
t.is(v.effect, "allow", "an offline run is allowed")
t.is(v.network[1].rule, "offline", "by its rule")

v = p:decide { language = "python", packages = { "six>=1" } }
t.is(v.effect, "deny", "an open constraint is denied")
t.is(v.code, "package_denied", "as a package")
t.is(v.packages[1].rule, "pins-only", "by the rule for pins")
t.is(v.reason.item, "six", "and named")

v = p:decide { language = "python", packages = { "six==1.*" } }
t.is(v.effect, "deny", "a wildcard is no pin")

v = p:decide { language = "python", packages = { "six==1.16.0", "requests[socks]==2.31.0" } }
t.is(v.effect, "allow", "pins are allowed in Python")

v = p:decide { language = "javascript", packages = { "lodash@4.17.21", "@scope/x@1.0.0" } }
t.is(v.effect, "allow", "pins are allowed in JavaScript")

v = p:decide { language = "javascript", packages = { "lodash@^4.17.21" } }
t.is(v.packages[1].rule, "pins-only", "a range is denied in JavaScript")

v = p:decide { language = "python", network = { mode = "any" } }
t.is(v.code, "network_denied", "open network access is denied")
t.is(v.reason.rule, "default", "by the default")

v = p:decide { language = "python", network = { mode = "registries" } }
t.is(v.reason.rule, "registries-off", "registries are off")

v = p:decide { language = "python", network = { mode = "domains", domains = { "api.example.com" } } }
t.is(v.code, "idempotency_required", "named domains need a key")
t.is(v.reason.rule, "key-when-networked", "says the rule")
t.is(v.reason.path, "/idempotency_key", "and where to put it")

v = p:decide {
  language = "python", network = { mode = "domains", domains = { "api.example.com" } }, idempotency_key = "order-1",
}
t.is(v.effect, "allow", "with a key they are allowed")
t.is(v.idempotency.require_key, true, "and the key stays required")

t.done()
