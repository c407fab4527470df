#!/bin/sh
# audit.sh --build DIR - how fast the audit log is written by many at once, verified, evaluated again and indexed
set -eu
build=$2
ninja -C "$build" tests/bench/audit_write tests/bench/audit_verify tests/bench/audit_replay tests/bench/store_index >/dev/null
place=$(mktemp -d "${TMPDIR:-/tmp}/reeve-bench-XXXXXX")
trap 'rm -rf "$place"' EXIT
echo "written (each record synced):"
"$build/tests/bench/audit_write" "$place" 1
"$build/tests/bench/audit_write" "$place" 16
echo "verified:"
"$build/tests/bench/audit_verify"
echo "evaluated again:"
"$build/tests/bench/audit_replay" "$place/replay" 20000
echo "indexed:"
"$build/tests/bench/store_index" 200000
