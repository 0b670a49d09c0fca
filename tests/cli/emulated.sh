#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kernels of the backend cuda-emulated: found beside the kernel library, in a run that asks for them and in no other, checked as any, never
# timed, and groups of their own.
. tests/support/cli.sh
# A program with no other libraries beside it.
mkdir "$WORK/program"
cp "$NORMBENCH" "$WORK/program/normbench"
export NORMBENCH=$WORK/program/normbench NORMBENCH_CONFIGS=$PWD/configs NORMBENCH_DATA=$PWD/tests/data
ln -s "$(realpath "${NORMBENCH_KERNELS:-$BUILD/libnormkernels.so}")" "$WORK/libnormkernels.so"
export NORMBENCH_KERNELS=$WORK/libnormkernels.so
refuses "backend cuda-emulated: not built; .make cuda-emulated. builds it" run quick --axis backend=cuda-emulated
refuses "backend cuda: not built; .make cuda. builds it" run quick --axis backend=cuda
library=$WORK/libnormkernels_cuda_emulated.so
cp "$BUILD/tests/plugins/emulated.so" "$library"

"$NORMBENCH" run quick --list >"$WORK/cases" 2>/dev/null
grep -q emulated "$WORK/cases" && bad "a run that does not ask for it has emulated kernels"
"$NORMBENCH" run quick --plugin "$library" --axis kernel='cuda_emulated:*' --list >"$WORK/cases" 2>"$WORK/err"
grep -q "rmsnorm_rows_native" "$WORK/cases" || bad "the plugin's kernel for the CPU is not selected"
grep -q "rows_cuda_emulated" "$WORK/cases" && bad "a plugin's emulated kernel is selected without its backend"
grep -q "axis backend=cuda-emulated selects" "$WORK/err" || bad "does not say how they are selected: $(cat "$WORK/err")"

cat >"$WORK/c.json" <<'JSON'
{ "launches": 1, "blocks_per_launch": 4, "blocks": [
  { "kernel": ["rmsnorm_rows", "rmsnorm_wrong", "rmsnorm_twopass"], "width": "scalar", "shape": ["16x64", "5x7"], "backend": ["cpu", "cuda-emulated"] } ] }
JSON
"$NORMBENCH" run "$WORK/c.json" --out "$WORK/run" --no-plots --format table >"$WORK/out" 2>"$WORK/err"
[ $? = 1 ] || bad "a wrong kernel, emulated: exit not 1; $(cat "$WORK/err")"
python3 - "$WORK/run" <<'PY' || failed=1
import json, sys
with open(sys.argv[1] + "/results.json") as f:
    run = json.load(f)
emulated = [r for r in run["records"] if r["backend"] == "cuda-emulated"]
cpu = [r for r in run["records"] if r["backend"] == "cpu"]
assert run["complete"] and len(emulated) == 4 and len(cpu) == 2, len(run["records"])
for r in emulated:
    right = "rmsnorm_rows" in r["key"]
    assert r["status"] == ("ok" if right else "inaccurate") and r["accuracy"], r["key"]
    assert r["timing"] is None and not r["counters"], r["key"]
    assert not right or (r["timing_reason"] == "emulated" and r["metamorphic"]["twice"]["verdict"] == "passed"), r["key"]
assert all(r["status"] == "ok" and r["timing"] for r in cpu)
assert not {r["group"] for r in emulated} & {r["group"] for r in cpu}
groups = {g["index"]: g["keys"] for line in open(sys.argv[1] + "/journal.jsonl") for g in json.loads(line).get("groups", [])}
for line in map(json.loads, open(sys.argv[1] + "/journal.jsonl")):
    if line["type"] in ("launch", "counters"):
        assert not any("emulated" in c["key"] for c in line["cases"]), line["type"]
    if line["type"] == "check" and "emulated" in groups[line["group"]][0]:
        assert line["copies"] == [], "a copy was chosen"
PY
tests/check_schema.py reports/schema "$WORK/run" >"$WORK/schema" 2>&1 || [ $? = 77 ] || bad "$(cat "$WORK/schema")"

# What is done is not done again, and what the journal lacks is.
lines=$(grep -c . "$WORK/run/journal.jsonl")
"$NORMBENCH" run --resume "$WORK/run" --no-plots >"$WORK/out" 2>"$WORK/err"
[ "$(grep -c '"type":"check"' "$WORK/run/journal.jsonl")" = "$(head -n "$lines" "$WORK/run/journal.jsonl" | grep -c '"type":"check"')" ] ||
    bad "resumed, it checks again what is in the journal"

"$NORMBENCH" replay "$WORK/run" '*rmsnorm_rows*16x64*' --format json >"$WORK/out" 2>"$WORK/err" || bad "replay: $(cat "$WORK/err")"
grep -q '"timing_reason": *"emulated"' "$WORK/out" || bad "a replay gives no reason: $(head -c 300 "$WORK/out")"
"$NORMBENCH" run "$WORK/c.json" --axis backend=cuda-emulated --axis kernel=rmsnorm_rows --out "$WORK/alone" >"$WORK/out" 2>"$WORK/err" ||
    bad "emulated alone: $(cat "$WORK/err")"
grep -q "Emulated" "$WORK/out" || bad "the summary does not say why nothing is timed: $(cat "$WORK/out")"
"$NORMBENCH" report "$WORK/alone" --format junit >"$WORK/out" 2>&1 || bad "report: $(cat "$WORK/out")"
"$NORMBENCH" compare "$WORK/run" "$WORK/alone" >"$WORK/out" 2>&1 || bad "compare: $(cat "$WORK/out")"
"$NORMBENCH" list kernels --format csv >"$WORK/out" 2>&1
grep -q '^cuda_emulated:rmsnorm_rows,cuda-emulated on the CPU,' "$WORK/out" || bad "list does not say what is emulated"
"$NORMBENCH" gate --baseline "$library" --candidate "$library" --list >"$WORK/out" 2>"$WORK/err"
grep -q "2 of its kernels do not run on the CPU and are left out" "$WORK/err" || bad "gate: $(cat "$WORK/err")"
grep -q emulated "$WORK/out" && bad "the gate would time what is emulated"
exit "$failed"
