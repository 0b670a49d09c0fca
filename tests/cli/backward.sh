#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A backward pass goes the whole way: planned, checked, timed beside its own copy, recorded, reported, replayed.
set -eu
"$NORMBENCH" run --axis pass=backward --axis op=rmsnorm,layernorm,add_rmsnorm --axis dtype=f32 --axis shape=64x256 --axis width=256 --axis kernel='*_plain' \
    --launches 2 --blocks 4 --no-counters --format table --out "$WORK/run" >"$WORK/table"
grep -q "dgamma of bound" "$WORK/table" || { echo "no column for the parameters"; cat "$WORK/table"; exit 1; }
/usr/bin/python3 - "$WORK/run/results.json" >"$WORK/key" <<'PY'
import json, sys
records = json.load(open(sys.argv[1]))["records"]
by_op = {r["op"]: r for r in reversed(records)} # the first of each
assert set(by_op) == {"rmsnorm", "layernorm", "add_rmsnorm"}, sorted(by_op)
for op, r in by_op.items():
    assert r["pass"] == "backward" and r["status"] == "ok", (r["key"], r["reason"])
    assert r["timing"]["time_ns"]["value"] > 0 and r["timing"]["vs_copy"]["value"] > 0, r["key"]
    assert r["timing"]["copy"].startswith("copy_add_backward" if op == "add_rmsnorm" else "copy_backward"), r["timing"]["copy"]
    assert 0 <= r["accuracy"]["parameters"]["dgamma"]["ratio"] <= 1 and r["column_summation_depth"] >= 4, r["key"]
    assert not {"root", "cast", "eps_place"} & set(r["axes"]), r["axes"]
    tensors = 4 if op == "add_rmsnorm" else 3
    assert r["bytes"] >= tensors * 64 * 256 * 4, r["bytes"]
assert by_op["layernorm"]["accuracy"]["parameters"]["dbeta"]["n"] == 256
assert by_op["rmsnorm"]["accuracy"]["parameters"]["dbeta"] is None
print(by_op["layernorm"]["key"])
PY
"$NORMBENCH" replay "$WORK/run" "$(cat "$WORK/key")" --check-only --format json >"$WORK/record"
grep -q '"status": "ok"' "$WORK/record"
"$NORMBENCH" report "$WORK/run" --format csv | head -1 | grep -q dgamma_ratio_to_bound
tests/check_schema.py reports/schema "$WORK/run" >"$WORK/schema" 2>&1 || [ $? = 77 ] || { cat "$WORK/schema"; exit 1; }
# The faults of gradients are tests/measure/test_backward.c's; the process of this one has to be ended.
code=0
"$NORMBENCH" run --plugin "$BUILD/tests/plugins/mistakes.so" --axis backend=plugin:mistakes --axis kernel=mistakes:rmsb_f32_correct,mistakes:rmsb_f32_writes_dx_unwanted \
    --axis width=native --axis pass=backward --axis op=rmsnorm --axis shape=8x40 --launches 0 --no-stress --no-plots --format csv --out "$WORK/faults" \
    >"$WORK/faulty" || code=$?
[ "$code" = 1 ] && grep -q '^mistakes:rmsb_f32_correct.*,ok,' "$WORK/faulty" && grep -q '^mistakes:rmsb_f32_writes_dx_unwanted.*,crashed,' "$WORK/faulty" ||
    { echo "exit code $code, should be 1"; cat "$WORK/faulty"; exit 1; }

# What asks for y says so.
"$NORMBENCH" probe rmsnorm_backward_plain >"$WORK/probe" 2>&1 && { echo "probe took a backward kernel"; exit 1; }
grep -q "forward" "$WORK/probe"
