-- Pinned packages only; no network, but for named domains, and those with an idempotency key, since what a
-- networked run does may have to be repeated. Domains are named in the request: list those that are yours with
-- `within { … }` to be stricter still.
return policy {
  packages = {
    rule { id = "pins-only", match = { pinned = false }, deny = "name one exact version, as in name==1.2.3 or name@1.2.3" },
    default = "allow",
  },
  network = {
    rule { id = "offline", match = { mode = "none" }, allow = true },
    rule { id = "named-domains", match = { mode = "domains" }, allow = true },
    rule { id = "registries-off", match = { mode = "registries" }, deny = "list what you need in `packages`; a run does not install" },
    default = "deny",
  },
  idempotency = {
    rule { id = "key-when-networked", match = { mode = "domains" }, require_key = true },
    default = "none",
  },
  backend = { default = "tenant" },
}
