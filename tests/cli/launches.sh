#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Launches are added where intervals are wide: between the fewest and the most, and every record says how many and why there were no more.
source tests/support/cli.sh

cat >"$WORK/config.json" <<'EOF'
{ "blocks": [ { "op": ["rmsnorm", "layernorm"], "kernel": "*_twopass", "width": "256", "shape": ["4x64", "64x384"] } ],
  "launches": [7, 9], "blocks_per_launch": 4 }
EOF

# check DIR FEWEST MOST WHY..: every launch in the journal is counted, every record says how many it had and one of these reasons.
check() {
    python3 - "$@" <<'EOF' || bad "$1: launches are not as promised"
import collections, json, sys
dir, fewest, most, reasons = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
lines = [json.loads(line) for line in open(dir + "/journal.jsonl")]
done = collections.Counter((l["group"], l["launch"]) for l in lines if l["type"] == "launch")
assert set(done.values()) == {1}, done
of_group = collections.Counter(g for g, _ in done)
stops = {l["group"]: l for l in lines if l["type"] == "stop"}
groups = next(l for l in lines if l["type"] == "run")["groups"]
results = json.load(open(dir + "/results.json"))
assert results["complete"] and results["counts"] == {"ok": 4}, results["counts"]
assert set(of_group) == set(range(len(groups))), of_group
for r in results["records"]:
    e = r["timing"]["evidence"]
    g = next(i for i, group in enumerate(groups) if r["key"] in group["keys"])
    assert e["n_launches"] == of_group[g] and fewest <= e["n_launches"] <= most, (e, of_group)
    assert e["stopped"] in reasons, e
    assert fewest == most and not stops or stops[g]["why"] == e["stopped"] and stops[g]["launches"] == of_group[g], stops
    if e["stopped"] == "most": assert e["n_launches"] == most, e
    if e["stopped"] == "aim": assert r["timing"]["vs_copy"]["low"] is not None, r["timing"]
EOF
}

run() {
    out=$1
    shift
    "$NORMBENCH" run "$WORK/config.json" --no-counters --no-plots --out "$WORK/$out" "$@" >"$WORK/out" 2>"$WORK/err" ||
        bad "$out: $(cat "$WORK/err")"
}

# Times are played: some that are exact, and some that no launches make known to 0.5 %.
run usual
grep -q "4 cases in 2 groups, 7 to 9 launches of 4 blocks each, until ratios are known to 0.5%" "$WORK/err" || bad "$(cat "$WORK/err")"
check "$WORK/usual" 7 7 aim
echo "*_twopass_* 2000 4 spread=0.5" >"$WORK/noise"
NORMBENCH_PLAYED=$WORK/noise run noisy
check "$WORK/noisy" 9 9 most
NORMBENCH_PLAYED=$WORK/noise run loose --aim 100 --launches 7:1000
check "$WORK/loose" 7 999 aim
run exactly --launches 2
grep -q ", 2 launches of 4 blocks each, about" "$WORK/err" || bad "$(cat "$WORK/err")"
check "$WORK/exactly" 2 2 fixed

# The rows of stress, on which a plugin's kernels are checked behind the run, have what is left of the budget: of some 170 that take half a second each
# not all are begun, and the run ends. What was not begun is no case without a verdict: the journal says that it was left out.
cat >"$WORK/slower.json" <<'EOF'
{ "blocks": [ { "op": "rmsnorm", "kernel": ["rmsnorm_twopass", "*:*"], "width": ["256", "native"], "shape": "1x64" } ],
  "launches": 1, "blocks_per_launch": 1, "budget_s": 6 }
EOF
echo "slow:check 5e8" >"$WORK/slow"
NORMBENCH_PLAYED=$WORK/slow "$NORMBENCH" run "$WORK/slower.json" --plugin "$BUILD/tests/plugins/slow.so" --no-counters --no-plots --out "$WORK/slower" >"$WORK/out" 2>"$WORK/err" || true
python3 - "$WORK/slower/checks/journal.jsonl" <<'EOF' || bad "checks on the rows of stress hold no budget: $(cat "$WORK/err")"
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
planned = sum(len(g["keys"]) for g in lines[0]["groups"])
checked = sum(len(l["cases"]) for l in lines if l["type"] == "check")
assert 0 < checked < 12 < planned, (checked, planned)
assert any(l["type"] == "stop" and l["why"] == "budget" for l in lines)
EOF

# Of a plugin's kernels no group is dropped before others, and what is dropped is said first of all.
some() { "$NORMBENCH" run "$@" --plugin "$BUILD/tests/plugins/slow.so" --list >"$WORK/out" 2>"$WORK/err"; }
some quick && grep '^slow:' "$WORK/out" >"$WORK/named" && [ -s "$WORK/named" ] || bad "no case of the plugin in quick"
some quick --budget 2 && grep '^slow:' "$WORK/out" | cmp -s - "$WORK/named" || bad "a budget drops the plugin's cases: $(cat "$WORK/err")"
grep -qE "^normbench: [0-9]+ cases in [0-9]+ groups?, [0-9]+ of [0-9]+ cases left out to hold the budget" "$WORK/err" || bad "not said: $(cat "$WORK/err")"
refuses "a single case of a plugin's kernel takes about" run quick --plugin "$BUILD/tests/plugins/slow.so" --axis shape=262144x4096 --axis data=normal --budget 1

# A launch whose line is damaged is made again, though its group had stopped; of a whole run nothing is.
n_launches() { "$NORMBENCH" run --resume "$WORK/usual" >"$WORK/out" 2>"$WORK/err" && grep -c '"type":"launch"' "$WORK/usual/journal.jsonl"; }
sed -i '0,/"type":"launch"/s/"sample_ns"/"sample_xx"/' "$WORK/usual/journal.jsonl"
before=$(n_launches)
python3 -c "
import json, sys
results = json.load(open(sys.argv[1]))
assert results['complete'] and all(7 <= r['timing']['evidence']['n_launches'] <= 9 for r in results['records'])" "$WORK/usual/results.json" ||
    bad "a damaged launch is not made again"
[ "$(n_launches)" = "$before" ] || bad "a whole run is measured again"

# Of what was asked for nothing is dropped unasked; a budget that was asked for holds.
cat >"$WORK/short.json" <<'EOF'
{ "blocks": [ { "op": ["rmsnorm", "layernorm"], "kernel": "*_twopass", "width": "256", "shape": ["64x64:16384:*4"] } ], "budget_s": 1 }
EOF
listed() { "$NORMBENCH" run "$WORK/short.json" --list "$@" 2>"$WORK/err" | wc -l; }
[ "$(listed)" -lt 10 ] || bad "the config's budget drops nothing"
[ "$(listed --launches 12)" -eq 10 ] || bad "--launches 12 drops cases: $(cat "$WORK/err")"
[ "$(listed --launches 12 --budget 1)" -lt 10 ] || bad "--budget 1 drops nothing"

for value in 8:4 0:4 1001 -1 8:40:50 many; do refuses "such as 8:40" run quick --launches "$value" --list; done
refuses "aim" run quick --aim 0 --list
exit "$failed"
