#!/bin/sh
# store.sh --build DIR - records a second when the index is made, and what asking it costs
set -eu
ninja -C "$2" tests/bench/store_index >/dev/null
exec "$2/tests/bench/store_index"
