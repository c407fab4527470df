local t = require("tap")
local p = require("fake.policy").load(".")
local request = { language = "javascript", packages = { "express@^4" } }

local function closure(license)
  return { packages = {
    { name = "accepts", version = "1.3.8", license = license, path = { "express", "accepts" } },
    { name = "express", version = "4.18.2", license = "MIT", direct = true, requested = "express@^4", path = { "express" } },
  } }
end

t.is(p:decide(request).effect, "allow", "as asked for it is allowed")
t.is(p:decide(request, closure("ISC")).effect, "allow", "a closure of listed licenses")

local v = p:decide(request, closure("AGPL-3.0"))
t.is(v.reason.rule, "unlisted", "one that is not on the list")
t.is(v.reason.item, "accepts", "by name")

t.is(p:decide(request, closure("")).reason.rule, "unstated", "one that states none")

v = p:decide(request, closure(nil))
t.is(v.code, "policy_error", "one that is not known is never allowed")
t.is(v.reason.message, "'license' of accepts 1.3.8 is not known: the registry does not tell it", "and says so")

t.done()
