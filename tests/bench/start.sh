#!/bin/sh
# start.sh --build DIR [PAIRS] - what a start costs against the floor, the bare interpreter and bubblewrap
set -eu
build=$2
# Meson names targets by their folder; they are not built by default.
ninja -C "$build" tests/bench/cold tests/bench/floor tools/reeve/reeve tools/spawner/reeve-spawner tools/gate/reeve-gate >/dev/null
exec "$build/tests/bench/cold" --reeve "$build/tools/reeve/reeve" --floor "$build/tests/bench/floor" -n "${3:-100}"
