#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gate --calibrate, and what a recorded gate --self-test leaves. Looks at forms and counts, not at noise.
. tests/support/cli.sh
python=/usr/bin/python3
export NORMBENCH_PLAYED=$WORK/noise
echo "* 2000 4 spread=0.01" >"$NORMBENCH_PLAYED"
few="--kernel rmsnorm_twopass --filter *_scalar_f* --axis shape=4x64"

# shellcheck disable=SC2086 # words on purpose
"$NORMBENCH" gate --calibrate $few --axis shape=4x64,8x32 --axis dtype=f32,bf16 --cases 1 --launches 6 --blocks 8 --out "$WORK/cal" >"$WORK/table" 2>"$WORK/err" ||
    bad "--calibrate: exit $?: $(cat "$WORK/err")"
grep -qE '^on .*[0-9]+ CPUs' "$WORK/table" || bad "the machine is not named: $(head -n 1 "$WORK/table")"
grep -qE 'Cannot be gated here|can be gated here' "$WORK/table" || bad "no conclusion: $(cat "$WORK/table")"
$python - "$WORK/cal/calibration.json" <<'PY' || bad "calibration.json: not as promised"
import json, sys
c = json.load(open(sys.argv[1]))
assert [(g["op"], g["dtype"], g["shape"]) for g in c["groups"]] == [("rmsnorm", "f32", "4x64"), ("rmsnorm", "f32", "8x32")]
for g in c["groups"]:
    noise = g["noise"]
    assert noise["launches"] == 6 and noise["ln_launch_sd"] > 0 and g["refused"] is None
    assert abs(noise["ln_within_sd"] ** 2 + noise["ln_between_sd"] ** 2 - noise["ln_launch_sd"] ** 2) < 1e-12
    assert set(noise["ln_bias"]) == {"control", "copy", "same"}
    assert g["usual_plan"]["smallest_effect"] > c["fail_margin"]
    wanted = g["wanted_plan"]
    assert wanted is None or wanted["regression_with_effect"] >= 0.95 and wanted["pass_without_change"] >= 0.95
assert c["fingerprint"]["cpu"] and c["effect"] == 0.015
PY
[ "$(wc -l <"$WORK/cal/samples.jsonl")" = 12 ] || bad "not every launch is recorded"

# shellcheck disable=SC2086
"$NORMBENCH" gate --self-test $few --trials 1 --powered 1 --effects 50 --screen-launches 7 --confirm-launches 12 --blocks 10 \
    --out "$WORK/trials" >"$WORK/table" 2>"$WORK/err" || bad "self-test: exit $?: $(cat "$WORK/err")"
tr -s ' \n' ' ' <"$WORK/table" | grep -q "^False alarms: [01] of 1, .*neighbours: not known below 20 trials" || bad "not the answer first: $(cat "$WORK/table")"
# The time left that the lines in a log say never grows, whatever a trial takes.
echo "process 1e10" >>"$NORMBENCH_PLAYED"
# shellcheck disable=SC2086
"$NORMBENCH" gate --self-test $few --trials 2 --powered 1 --effects 2,50 --screen-launches 7 --confirm-launches 12 --blocks 10 >/dev/null 2>"$WORK/err"
sed -n 's/.* \([0-9]*\) s left: .*/\1/p' "$WORK/err" >"$WORK/left"
[ "$(wc -l <"$WORK/left")" -gt 3 ] && sort -rn -c "$WORK/left" || bad "the time left grows: $(cat "$WORK/err")"
# A budget ends a trial between two of its launches, which take 10 s here.
# shellcheck disable=SC2086
"$NORMBENCH" gate --self-test $few --trials 2 --powered 0 --budget 25 >"$WORK/table" 2>"$WORK/err" || bad "a budget: exit $?: $(cat "$WORK/err")"
grep -q '^No trial came to its end' "$WORK/table" || bad "the budget is not held: $(cat "$WORK/table")"
echo "* 2000 4 spread=0.01" >"$NORMBENCH_PLAYED"
$python - "$WORK/trials" <<'PY' || bad "the recorded self-test: not as promised"
import json, sys
trials = json.load(open(sys.argv[1] + "/trials.json"))
lines = [json.loads(line) for line in open(sys.argv[1] + "/samples.jsonl")]
verdicts = [line for line in lines if line["type"] == "verdict"]
assert [v["verdict"] for v in verdicts] == [r["verdict"] for r in trials["results"]] and len(verdicts) == 1 + 2
launches = [line for line in lines if line["type"] == "launch"]
assert {len(line["arms"]) for line in launches} == {3, 4}
powered = next(line for line in launches if len(line["arms"]) == 4)
assert [(a["arm"], a["effect_percent"]) for a in powered["arms"]] == [
    ("baseline", 0), ("control", 0), ("copy", 0), ("injected", 50)]
assert all(len(a["sample_ns"]) == 10 for a in powered["arms"])
injected = {e["effect_percent"]: e["injected"] for e in trials["effects"]}
assert all(share is None or abs(share - percent / 100) < 0.02 for percent, share in injected.items()), injected
PY
validates=0
$python tests/check_schema.py reports/schema "$WORK/cal" "$WORK/trials" || validates=$?
[ "$validates" = 0 ] || [ "$validates" = 77 ] || bad "not valid by the schemas"


refuses "0.5% or less" gate --calibrate --effect 0.5
refuses "--launches 5: .*6" gate --calibrate --launches 5
refuses "one of table, json" gate --calibrate --format junit
refuses "one of table, json" gate --self-test --format markdown
refuses "not both" gate --calibrate --self-test
refuses "no --candidate" gate --calibrate --candidate x.so
refuses "no --function" gate --calibrate --baseline x.so --function f
refuses "no kernel has this name" gate --calibrate --kernel no_such_kernel
refuses "no case is left" gate --calibrate --kernel rmsnorm_twopass --filter "no_such_case"
refuses "no/such" gate --calibrate --baseline no/such.so
refuses "--screen-launches 3: .*7" gate --self-test --screen-launches 3
exit "$failed"
