#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stress: what it leaves is valid and says the same again from the folder; grades, exit codes, resuming, plugins that misbehave,
# keys with values and with reproducer files.
. tests/support/cli.sh
set -e
fail() { echo "$*"; exit 1; }
json() { /usr/bin/python3 - "$@"; }
cat >"$WORK/small.json" <<'JSON'
{ "launches": 0, "blocks": [
  { "op": ["rmsnorm", "layernorm"], "dtype": ["f32", "bf16"], "shape": "4x64", "data": ["normal", "offset(100)", "big", "nan"] },
  { "label": "fast variance", "source": "onnxruntime#28463", "text": "a large mean over a spread of 1", "op": "layernorm",
    "dtype": "f32", "shape": "1x4", "data": "values(40000,40001,40002,40003)" } ] }
JSON
stress() { "$NORMBENCH" stress "$WORK/small.json" --width scalar --quiet "$@"; }

stress --kernel 'rmsnorm_twopass,layernorm_onepass' --dtype f32 --search 2 --out "$WORK/run" >"$WORK/table"
/usr/bin/python3 tests/check_schema.py reports/schema "$WORK/run" || { [ $? = 77 ] || exit 1; }
grep -q "rmsnorm_twopass  *f32  *scalar" "$WORK/table" || fail "no grade of rmsnorm_twopass"
json "$WORK" <<'PY'
import json, sys
stress = json.load(open(sys.argv[1] + "/run/stress.json"))
grades = {g["variant"]: g for g in stress["grades"]}
assert set(grades) == {"rmsnorm_twopass_scalar_f32", "layernorm_onepass_scalar_f32"}, list(grades)
rms, ln = grades["rmsnorm_twopass_scalar_f32"], grades["layernorm_onepass_scalar_f32"]
assert rms["declared"] in ("A+", "A", "B"), rms
assert rms["all"] == "F" and "big" in rms["why_all"]["key"] and rms["zero"] + rms["nan"] + rms["inf"] > 0, rms
assert ln["all"] == "F" and ln["n_declared"] < ln["n_cases"], ln
bug, = stress["bugs"]
assert [w["kernel"] for w in bug["failed"]] == ["layernorm_onepass"] and not bug["survived"], bug
assert len(stress["studies"]) == 2 and all(s["status"] in ("ok", "not_run") for s in stress["studies"])
PY

# No kernel is judged by the statistics of another whose exact results it shares: a 16-bit one that loses eps has a reason for its NaN.
"$NORMBENCH" stress bugs --kernel 'layernorm_twopass,layernorm_composed_lowp' --filter '*_scalar_f16/shape:1x10/*' --no-search --no-plots --quiet --out "$WORK/shared" >"$WORK/out" ||
    fail "16-bit statistics: $(cat "$WORK/out")"
grep -q '"out_of_range"' "$WORK/shared/results.json" || fail "16-bit statistics: no row lost"

# The same again from the folder, and nothing done twice on the way on.
cp "$WORK/run/stress.json" "$WORK/before.json"
"$NORMBENCH" report "$WORK/run" --no-write --format json | cmp - "$WORK/before.json" || fail "report says something else"
"$NORMBENCH" report "$WORK/run" --no-write --quiet | cmp - "$WORK/table" || fail "report prints something else"
head -n 1 "$WORK/run/journal.jsonl" >"$WORK/first" && mkdir "$WORK/torn" && cp "$WORK/first" "$WORK/torn/journal.jsonl"
"$NORMBENCH" stress --resume "$WORK/torn" --no-search --no-plots --quiet >"$WORK/out" || fail "a torn run is not taken up again"
json "$WORK" <<'PY'
import json, sys
a, b = (json.load(open(f"{sys.argv[1]}/{d}/stress.json"))["grades"] for d in ("run", "torn"))
assert a == b, "other grades after --resume"
PY

# A judgement that somebody has cut up is no reason to fall over.
mkdir "$WORK/cut" && cp "$WORK/run/journal.jsonl" "$WORK/run/results.json" "$WORK/cut/"
printf '{"schema":"3.0","grades":[],"studies":[7,{},{"key":"x","variant":"x","dtype":"x","replay":"x","status":"?","frontiers":[1,{"of":2},{"of":"a","status":"found"}]}],"bugs":[]}' >"$WORK/cut/stress.json"
/usr/bin/python3 tests/support/sums.py "$WORK/cut/stress.json"
"$NORMBENCH" report "$WORK/cut" --no-write >"$WORK/out" 2>"$WORK/err" || fail "report of a damaged judgement"
grep -q "study 1 is damaged" "$WORK/err" || fail "damage is not named"

# Low grades fail only when that is asked for.
ends 1 "" stress --kernel rmsnorm_serial --no-search --no-plots --min-grade A+ --out "$WORK/low"

# A plugin is stressed alone; what misbehaves is named with the case that did it, and the rest goes on.
plugins=$BUILD/tests/plugins
ends 1 "" stress --plugin "$plugins/crash.so" --plugin "$plugins/nan.so" --plugin "$plugins/example.so" --search 1 --no-plots --out "$WORK/plugins"
/usr/bin/python3 tests/check_schema.py reports/schema "$WORK/plugins" || { [ $? = 77 ] || exit 1; }
grep -q "crashed: crash:bad_crash_f32/shape:4x64/data:normal" "$WORK/out" || fail "the crash is not named"
json "$WORK" <<'PY'
import json, sys
stress = json.load(open(sys.argv[1] + "/plugins/stress.json"))
grades = {g["variant"]: g for g in stress["grades"]}
assert not [v for v in grades if ":" not in v], "a built-in kernel was stressed"
assert grades["crash:bad_crash_f32"]["declared"] == grades["nan:bad_nan_f32"]["declared"] == "F"
assert "crashed" in grades["crash:bad_crash_f32"]["why_declared"]["text"]
assert any(g["declared"] in ("A+", "A", "B") for v, g in grades.items() if v.startswith("example:")), grades
studies = {s["variant"]: s for s in stress["studies"]}
assert studies["crash:bad_crash_f32"]["status"] == "skipped" and "crashed" in studies["crash:bad_crash_f32"]["reason"]
PY

# Every replay line works, those of rows that a search made too.
json "$WORK" >"$WORK/keys" <<'PY'
import json, sys
stress = json.load(open(sys.argv[1] + "/run/stress.json"))
keys = [b["worst"]["key"] for b in stress["bugs"]]
worst = [w for s in stress["studies"] for w in s["worst"] or [] if "key" in w]
print("\n".join(keys + [w["key"] for w in worst][:2]))
PY
[ -s "$WORK/keys" ] || fail "no keys"
while read -r key; do
    "$NORMBENCH" replay "$key" --check-only --quiet --format json >"$WORK/out" </dev/null || fail "replay $key"
    grep -q '"evidence"' "$WORK/out" || fail "replay $key says nothing"
done <"$WORK/keys"

refuses "A\+, A, B" stress --min-grade E
refuses "f32, f16, bf16" stress --dtype f99
refuses "--search 0" stress --search 0
refuses "table, markdown, json" stress --format csv
refuses "too many" stress stress bugs
refuses "did you mean" stress stres
refuses "no kernel has this name" stress "$WORK/small.json" --kernel nothing_like_this
refuses "no block of .* has it" stress "$WORK/small.json" --dtype f16
refuses "leave out names" stress --resume "$WORK/run" --dtype f32
mkdir -p "$WORK/other"
sed 's/"schema":"3.0"/"schema":"2.0"/; s/,"sum":"[0-9a-f]*"}$/}/' "$WORK/first" >"$WORK/other/journal.jsonl"
refuses "has schema 2.0, and this version reads only 3.0" stress --resume "$WORK/other"
"$NORMBENCH" run "$WORK/small.json" --launches 0 --no-plots --quiet --out "$WORK/began" >/dev/null 2>&1
refuses "\`normbench run\` began it" stress --resume "$WORK/began"
exit "$failed"
