#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a command prints as the way to repeat a failure repeats it: in an empty folder, with its status and exit code, whatever kind of failure
# it was; for run, check-only runs, stress, try and the gate.
. tests/support/cli.sh
plugins=$(realpath "$BUILD/tests/plugins")
mkdir "$WORK/bin" "$WORK/empty" "$WORK/here"
ln -s "$NORMBENCH" "$WORK/bin/normbench"
PATH=$WORK/bin:$PATH
export TMPDIR=$WORK
n=0
# COMMAND STATUS: ends with 1 and that status
repeats() {
    local code=0
    (cd "$WORK/empty" && eval "$1 --quiet") >"$WORK/again" 2>"$WORK/err" || code=$?
    n=$((n + 1))
    [ $code = 1 ] && head -n 2 "$WORK/again" | grep -qF "($2)" || bad "$1: exit $code, $(cat "$WORK/again"), wanted $2: $(cat "$WORK/err")"
}
# FOLDER WANTED..: the failed records of its results repeat, among them these statuses or relations
all_repeat() {
    local status command n=0
    /usr/bin/python3 - "$@" <<'PY' >"$WORK/lines" || bad "$1: what it should have found is missing"
import json, sys
failed = [r for r in json.load(open(sys.argv[1] + "/results.json"))["records"] if r["status"] not in ("ok", "out_of_range", "skipped")]
said = " ".join(f"{r['status']} {r['reason']}" for r in failed)
one = {}
for r in failed:
    relation = (r["reason"] or "").split(" is broken")[0] if "relation" in (r["reason"] or "") else ""
    one.setdefault((r["status"], relation), r)
for r in one.values(): print(r["status"], r["replay"])
sys.exit([w for w in sys.argv[2:] if w not in said] != [])
PY
    while read -r status command; do repeats "$command" "$status"; done <"$WORK/lines"
    [ "$n" -gt 0 ] || bad "$1: nothing failed"
}

# ---- a run, timed: every way to fail, by a plugin that is named from here ------------------------------------------------------------
echo '{ "blocks": [ { "op": "rmsnorm", "shape": "32x256", "affine": "gamma" } ], "launches": 1, "blocks_per_launch": 4 }' >"$WORK/timed.json"
cd "$WORK/here" || exit 1
given=()
for name in biased change_x crash late_crash depends_on_range wrong late_wrong read_outside error write_between; do
    cp "$plugins/hostile.so" $name.so && given+=(--plugin ./$name.so)
done
"$NORMBENCH" run "$WORK/timed.json" "${given[@]}" --axis 'kernel=*bad_*' --no-plots --no-counters --no-stress --quiet --out run >/dev/null 2>&1
all_repeat run inaccurate biased changed_input crashed not_reproducible read_outside returned_error wrote_outside wrong_when_timed
cp "$plugins/hang.so" . && "$NORMBENCH" run "$WORK/timed.json" --plugin ./hang.so --axis 'kernel=hang:*' --case-timeout 2 --no-plots --no-counters --no-stress --quiet --out hung >/dev/null 2>&1
all_repeat hung timed_out

# ---- nothing timed: relations between calls, too, by the folder and by the whole line ------------------------------------------------------
cp "$plugins/mistakes.so" .
"$NORMBENCH" run "$WORK/timed.json" --axis op=rmsnorm,layernorm --axis shape=4x256 --axis affine=none,gamma,gamma_beta --plugin ./mistakes.so \
    --axis 'kernel=mistakes:rms_f32_by_*,mistakes:rms_f32_rounds_up,mistakes:rms_f32_sum_drops_last,mistakes:rms_f32_eps_forgotten,mistakes:ln_f32_one_pass,mistakes:rms_f32_ties_away,mistakes:ln_f32_mean_narrow,mistakes:rms_f32_rsqrt*,mistakes:rms_f32_flushes_input' \
    --axis data=normal,sparse,one,"values(1,-2,3,0)","scale(100)" --launches 0 --no-stress --no-plots --quiet --out checked >/dev/null 2>"$WORK/err" || [ $? = 1 ] || bad "checked: $(cat "$WORK/err")"
all_repeat checked "relation"

# ---- what is wrong in one place alone is said so ------------------------------------------------------------------------------------------
"$NORMBENCH" run "$WORK/timed.json" --axis shape=33x257 --plugin ./mistakes.so --axis 'kernel=mistakes:rms_f32_row_last_if_odd,mistakes:rms_f32_column_last_if_odd' \
    --launches 0 --no-stress --no-plots --quiet --out places >/dev/null 2>&1
for place in 'row 32 of y is not written' 'beyond the bound; all in column 256'; do
    grep -q "$place\"" places/results.json || bad "not said: $place: $(grep '"reason"' places/results.json)"
done

all_repeat places inaccurate not_written

# ---- stress, try and the gate ------------------------------------------------------------------------------------------------------------
"$NORMBENCH" stress --plugin ./mistakes.so --kernel mistakes:rms_f32_rounds_up,mistakes:rms_f32_by_place --filter 'shape:4x256/' --filter data:normal \
    --no-search --no-plots --quiet --out stressed >/dev/null 2>&1
all_repeat stressed "relation"
# What try prints, over as many lines as it takes, by its folder; from the program's own, too, where PATH does not find it.
(cd "$(dirname "$NORMBENCH")" && PATH=/usr/bin:/bin "$NORMBENCH" try "$WORK/here/mistakes.so" --kernel mistakes:rms_f32_by_batch --budget 5 --no-peers --quiet --out "$WORK/here/tried" >"$WORK/tried" 2>&1)
awk '/^  [^ ]*normbench[^ ]* replay/ { on = 1 } on { print } on && !/\\$/ { exit }' "$WORK/tried" >"$WORK/line"
repeats "$(cat "$WORK/line")" "$(sed -n 's/^right? *NO: \([a-z_]*\).*/\1/p' "$WORK/tried")"
echo '{ "blocks": [ { "op": "rmsnorm", "shape": "16x64" } ] }' >"$WORK/gate.json"
"$NORMBENCH" gate --config "$WORK/gate.json" --baseline "$plugins/gate_old.so" --candidate "$plugins/gate_new.so" --kernel gated_zeros --kernel gated_crashes \
    --kernel gated_skips --kernel gated_fails --screen-launches 7 --quiet --out gated >"$WORK/gated" 2>"$WORK/err"
/usr/bin/python3 - "$WORK/gated" <<'PY' >"$WORK/lines" || bad "the gate prints no line: $(cat "$WORK/gated" "$WORK/err")"
import json, re, sys
said, cases = open(sys.argv[1]).read(), json.load(open("gated/gate.json"))["cases"]
for c in cases: print(re.search("inaccurate|crashed|wrong_when_timed|returned_error", c["reason"])[0], c["replay"])
sys.exit(len(cases) != 4 or any(c["replay"] not in said for c in cases))
PY
while read -r status command; do repeats "$command" "$status"; done <"$WORK/lines"
valid=0
(cd "$OLDPWD" && /usr/bin/python3 tests/check_schema.py reports/schema "$WORK/here/gated" "$WORK/here/checked") >"$WORK/said" 2>&1 || valid=$?
[ $valid = 0 ] || [ $valid = 77 ] || bad "$(cat "$WORK/said")"
exit "$failed"
