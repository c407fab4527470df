return policy {
  packages = { default = "allow" },
  network = { default = "allow" },
  idempotency = { default = "none" },
  backend = { default = "tenant" },
}
