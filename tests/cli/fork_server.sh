#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A peer's library is loaded once for the plan, for the checks on each CPU and for each round of launches, not in every worker; in every worker
# where it has threads as soon as it is loaded. A forked worker does not take it down: of a large library that takes longer than a launch. A
# worker that crashes is named either way, and takes no other along.
set -eu
fail() { echo "$1"; exit 1; }
export NORMBENCH_PEERS=$BUILD/tests/plugins FAKELIB_LOG=$WORK/loadings

cat >"$WORK/config.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "dtype": "f32", "shape": ["8x384", "16x384", "24x384"], "width": "256",
                "kernel": ["rmsnorm_fast", "*:*"] } ], "launches": 3, "blocks_per_launch": 4 }
JSON
cpus=$(nproc)
# NAME LOADINGS GROUPS OPTION..: runs, and counts how often the library was loaded: LOADINGS, and once for each CPU that checks groups
run() {
    local name=$1 least=$(($2 + 1)) most=$(($2 + (cpus < $3 ? cpus : $3))) loadings
    shift 3
    rm -f "$FAKELIB_LOG"
    "$NORMBENCH" run "$WORK/config.json" --peer fakelib --no-plots --format table --out "$WORK/$name" "$@" >"$WORK/$name.table" 2>"$WORK/$name.err" || code=$?
    loadings=$(grep -c loaded "$FAKELIB_LOG")
    [ "$loadings" -ge "$least" ] && [ "$loadings" -le "$most" ] || fail "$name: $loadings loadings, should be $least to $most"
}
code=0
run shared 4 3 # the plan, 3 rounds
[ "$(grep -c down "$FAKELIB_LOG")" -le 1 ] || fail "$(grep -c down "$FAKELIB_LOG") processes took the library down; at most what loaded it for the plan should"
FAKELIB_THREAD=1 run threads 16 3 # the plan, 3 groups x (check, 3 launches, counters); the fork servers of the checks give up
[ "$code" = 0 ] || fail "ended with $code"
/usr/bin/python3 - "$WORK" <<'PY'
import json, sys
for name in "shared", "threads":
    records = json.load(open(f"{sys.argv[1]}/{name}/results.json"))["records"]
    peer = [r for r in records if r["variant"].startswith("fakelib:")]
    assert len(peer) == 3, peer
    for r in records:
        assert r["status"] == "ok" and r["timing"] and r["timing"]["evidence"]["n_launches"] == 3, (name, r["variant"], r["status"], r["reason"])
PY

[ "$(nproc)" -ge 2 ] || exit 0
FAKELIB_CRASHES=1 run crashed 4 6 --axis threads=1,2
[ "$code" = 1 ] || fail "a crash ended with $code"
/usr/bin/python3 - "$WORK/crashed/results.json" <<'PY'
import json, sys
for r in json.load(open(sys.argv[1]))["records"]:
    crashes = r["variant"].startswith("fakelib:") and r["axes"]["threads"] == "2"
    assert r["status"] == ("crashed" if crashes else "ok"), (r["key"], r["status"], r["reason"])
    assert not crashes or "signal 6" in r["reason"], r["reason"]
PY
