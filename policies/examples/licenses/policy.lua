-- Licenses of the list in data/allowed.json, as the packages state them. What was asked for is judged when it is known
-- what would be installed: so nothing is denied that is only asked for.
return policy {
  packages = {
    rule { id = "as-asked", match = { stage = "requested" }, allow = true },
    rule { id = "listed", match = { license = data "allowed" }, allow = true },
    rule { id = "unstated", match = { license = "" }, deny = "states no license" },
    rule { id = "unlisted", match = { name = "*" }, deny = "its license is not on the list" },
    default = "deny",
  },
  network = { rule { id = "offline", match = { mode = "none" }, allow = true }, default = "deny" },
  idempotency = { default = "none" },
  backend = { default = "tenant" },
}
