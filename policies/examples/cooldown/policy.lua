-- Nothing that was published less than a week ago, and only files whose hash the registry itself tells. An older
-- version is chosen where there is one: `newest_published` acts on the whole closure.
--
-- `stage = "resolved"` comes before facts that are known only then. So the rule is passed over while packages are
-- as they were asked for, and the resolver knows from the start what it is obliged to.
return policy {
  packages = {
    rule { id = "yanked", match = { stage = "resolved", yanked = true }, deny = "withdrawn by its authors" },
    rule { id = "install-script", match = { stage = "resolved", install_script = true }, deny = "runs a program when it is installed" },
    rule { id = "settled", match = { name = "*" }, allow = true, newest_published = "P7D", require_hash = true },
    default = "deny",
  },
  network = { rule { id = "offline", match = { mode = "none" }, allow = true }, default = "deny" },
  idempotency = { default = "none" },
  backend = { default = "tenant" },
}
