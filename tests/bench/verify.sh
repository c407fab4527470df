#!/bin/sh
# verify.sh --build DIR - records a second of `reeve audit verify`
set -eu
ninja -C "$2" tests/bench/audit_verify >/dev/null
exec "$2/tests/bench/audit_verify"
