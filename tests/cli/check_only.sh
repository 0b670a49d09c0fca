#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A config without launches: checked and not timed, with ratios, relations and labels in every record; resumed where it was cut off
# (what breaks a relation is tests/measure/test_metamorphic.c's).
. tests/support/cli.sh
cat >"$WORK/c.json" <<'JSON'
{ "launches": 0, "blocks": [
  { "label": "a#1", "text": "the first", "source": "a/a#1", "kernel": ["rmsnorm_twopass", "layernorm_twopass"], "width": "scalar",
    "dtype": ["f32", "bf16"], "shape": ["4x7", "3x64"], "data": ["normal", "values(1,-0,0x1p-24)"], "params": ["drawn", "negative"] },
  { "label": "b", "kernel": "rmsnorm_twopass", "width": "scalar", "shape": "4x7" } ] }
JSON
"$NORMBENCH" run "$WORK/c.json" --out "$WORK/run" >"$WORK/out" 2>"$WORK/err" || bad "run: exit $?; $(cat "$WORK/err")"
grep -q "not timed" "$WORK/err" || bad "does not say that nothing is timed: $(cat "$WORK/err")"
python3 - "$WORK/run" <<'PY' || failed=1
import json, sys
with open(sys.argv[1] + "/results.json") as f:
    run = json.load(f)
records = run["records"]
assert len(records) == 32 and run["complete"] and run["plan"]["launches"] == 0, len(records)
assert run["labels"] == [{"name": "a#1", "source": "a/a#1", "text": "the first"}, {"name": "b", "source": None, "text": None}]
both = [r for r in records if r.get("labels") == ["a#1", "b"]]
assert len(both) == 1 and "shape:4x7/data:normal" in both[0]["key"], len(both)
for r in records:
    assert r["status"] == "ok" and r["timing"] is None and "not timed" in r["timing_reason"] and not r["counters"], r["key"]
    assert r["accuracy"]["ratios"]["noise_ratio"] is not None, r["key"]
    assert all(v["verdict"] != "failed" for v in r["metamorphic"].values() if isinstance(v, dict)), r["key"]
PY
tests/check_schema.py reports/schema "$WORK/run" >"$WORK/schema" 2>&1 || [ $? = 77 ] || bad "$(cat "$WORK/schema")"

# --launches 0 makes any config one of these; another run of it by hand is the same.
"$NORMBENCH" run quick --launches 0 --filter "rmsnorm_twopass_scalar_f32/shape:64x384" --out "$WORK/quick" --no-plots >"$WORK/out" 2>&1 ||
    bad "quick: $(cat "$WORK/out")"
key=$(python3 -c "import json,sys;print(json.load(open(sys.argv[1]+'/results.json'))['records'][-1]['key'])" "$WORK/run")
"$NORMBENCH" replay "$key" --check-only --format json | grep -q '"noise_ratio"' || bad "replay of $key has no ratios"

# What is in the journal is not checked again.
head -c -200 "$WORK/run/journal.jsonl" >"$WORK/cut" && cp "$WORK/cut" "$WORK/run/journal.jsonl" && rm "$WORK/run/results.json"
"$NORMBENCH" run --resume "$WORK/run" --no-plots >"$WORK/out" 2>"$WORK/err" || bad "resume: $(cat "$WORK/err")"
python3 -c "import json,sys;assert json.load(open(sys.argv[1]+'/results.json'))['complete']" "$WORK/run" || failed=1

# A worker that has no memory for its inputs: its case is skipped, and the rest is there.
cat >"$WORK/large.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "dtype": "f32", "shape": ["4096x40960", "8x64"], "kernel": "rmsnorm_twopass", "width": "256" } ],
  "launches": 1, "blocks_per_launch": 4 }
JSON
if (ulimit -v 500000 && "$NORMBENCH" list kernels) >"$WORK/out" 2>&1; then # not under a sanitizer, which needs terabytes of addresses
    (ulimit -v 500000; "$NORMBENCH" run "$WORK/large.json" --no-plots --no-counters --out "$WORK/large") >"$WORK/out" 2>"$WORK/err" || failed=1
    python3 - "$WORK/large" <<'PY' || failed=1
import json, sys
with open(sys.argv[1] + "/results.json") as f:
    status = {r["axes"]["shape"]: (r["status"], r["reason"]) for r in json.load(f)["records"]}
assert status["4096x40960"][0] == "skipped" and "no memory" in status["4096x40960"][1], status
assert status["8x64"][0] == "ok", status
PY
fi
exit "$failed"
