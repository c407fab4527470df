-- The policy of a reeve without configuration: the bounds of a request and its tenant's network ceiling are
-- all that holds. Copy it with `reeve policy init` to begin a policy of your own.
return policy {
  packages = { default = "allow" },
  network = { default = "allow" },
  idempotency = { default = "none" },
  backend = { default = "tenant" },
}
