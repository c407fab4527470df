local t = require("tap")
local p = require("fake.policy").load(".")
local request = { language = "python", packages = { "requests>=2" } }
local day, now = 86400, 1750000000

local function closure(idna)
  local packages = {
    { name = "idna", version = "3.4", kind = "wheel", published_at = now - 900 * day, yanked = false, install_script = false,
      registry_hash = true, path = { "requests", "idna" } },
    { name = "requests", version = "2.31.0", kind = "wheel", published_at = now - 700 * day, yanked = false, install_script = false,
      registry_hash = true, direct = true, requested = "requests>=2", path = { "requests" } },
  }
  for name, value in pairs(idna) do packages[1][name] = value end
  return { packages = packages }
end

local v = p:decide(request)
t.is(v.effect, "allow", "as asked for it is allowed")
t.is(v.packages[1].newest_published_s, 7 * day, "and the resolver is told of the week")
t.is(v.packages[1].require_hash, true, "and of the hash")

v = p:decide(request, closure {})
t.is(v.effect, "allow", "an old closure is allowed")

v = p:decide(request, closure { published_at = now - 2 * day })
t.is(v.code, "package_denied", "a young one is not")
t.is(v.reason.item, "idna", "it is named")
t.is(v.reason.rule, "settled", "with the rule")
t.is(v.reason.path[1], "requests", "and how it came in")
t.is(v.packages[1].unmet[1], "newest_published", "an older version would do")

v = p:decide(request, closure { published_at = now - 7 * day })
t.is(v.effect, "allow", "a week is enough")

v = p:decide(request, closure { registry_hash = false })
t.is(v.packages[1].unmet[1], "require_hash", "no hash, no run")

v = p:decide(request, closure { yanked = true })
t.is(v.reason.rule, "yanked", "withdrawn ones are denied")

v = p:decide(request, closure { install_script = true })
t.is(v.reason.rule, "install-script", "and those that run a program")

t.done()
