#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A backward pass goes the whole way: planned, checked, timed beside its own roof, recorded, reported, replayed. Faults are named.
set -eu
"$NORMBENCH" run --axis pass=backward --axis op=rmsnorm,layernorm,add_rmsnorm --axis shape=64x1024 --axis width=256 --axis kernel='*_plain' \
    --launches 2 --blocks 4 --no-counters --format table --out "$WORK/run" >"$WORK/table"
grep -q "dgamma of bound" "$WORK/table" || { echo "no column for the parameters"; cat "$WORK/table"; exit 1; }
/usr/bin/python3 - "$WORK/run/results.json" >"$WORK/key" <<'PY'
import json, sys
records = json.load(open(sys.argv[1]))["records"]
by_op = {r["op"]: r for r in reversed(records)} # the first of each
assert set(by_op) == {"rmsnorm", "layernorm", "add_rmsnorm"}, sorted(by_op)
for op, r in by_op.items():
    assert r["pass"] == "backward" and r["status"] == "ok", (r["key"], r["reason"])
    assert r["timing"]["time_ns"]["value"] > 0 and r["timing"]["roof"]["value"] > 0, r["key"]
    assert r["timing"]["copy"].startswith("copy_add_backward" if op == "add_rmsnorm" else "copy_backward"), r["timing"]["copy"]
    assert 0 <= r["accuracy"]["parameters"]["dgamma"]["ratio"] <= 1 and r["column_chain"] >= 4, r["key"]
    assert not {"root", "cast", "eps_place"} & set(r["axes"]), r["axes"]
    tensors = 4 if op == "add_rmsnorm" else 3
    assert r["bytes"] >= tensors * 64 * 1024 * 4, r["bytes"]
assert by_op["layernorm"]["accuracy"]["parameters"]["dbeta"]["n"] == 1024
assert by_op["rmsnorm"]["accuracy"]["parameters"]["dbeta"] is None
print(by_op["layernorm"]["key"])
PY
"$NORMBENCH" replay "$WORK/run" "$(cat "$WORK/key")" --check-only >"$WORK/record"
grep -q '"status": "ok"' "$WORK/record"
for format in markdown csv google_benchmark json; do "$NORMBENCH" report "$WORK/run" --format $format >"$WORK/report"; done
"$NORMBENCH" report "$WORK/run" --format csv | head -1 | grep -q dgamma_ratio_to_bound
tests/check_schema.py reports/schema "$WORK/run" >"$WORK/schema" 2>&1 || [ $? = 77 ] || { cat "$WORK/schema"; exit 1; }
# Two threads sum the same columns to the same bits as one.
if [ "$(nproc)" -ge 2 ]; then
    "$NORMBENCH" run --axis pass=backward --axis op=layernorm --axis shape=256x512 --axis width=256 --axis kernel='*_plain' \
        --axis threads=2 --launches 1 --blocks 4 --no-counters --no-plots --out "$WORK/threads" >"$WORK/table"
fi

code=0
"$NORMBENCH" run --plugin "$BUILD/tests/plugins/gradients.so" --axis backend=plugin:gradients --axis kernel='*' --axis width=native --axis pass=backward \
    --axis op=rmsnorm,layernorm,add_layernorm,batchnorm --axis shape=64x40 --launches 1 --blocks 4 --no-counters --no-plots --out "$WORK/faults" \
    >"$WORK/table" || code=$?
[ "$code" = 1 ] || { echo "exit code $code, should be 1"; cat "$WORK/table"; exit 1; }
/usr/bin/python3 - "$WORK/faults/results.json" <<'PY'
import json, sys
expected = {
    "correct": "ok", "correct_centred": "ok", "correct_add": "ok", "no_mean": "inaccurate", "no_pull": "inaccurate", "unbiased": "inaccurate",
    "no_residual": "inaccurate", "changes_dy": "changed_input", "reads_dy_behind": "read_outside", "writes_dx_unwanted": "crashed", "forgets_block": "inaccurate",
    "dbeta_of_g": "inaccurate", "accumulates": "read_outside", "writes_dgamma_behind": "wrote_outside", "leaves_dgamma": "read_outside",
    "by_range": "not_reproducible", "channels": "ok",
}
got = {r["key"].split(":")[1].split("/")[0][:-4]: r for r in json.load(open(sys.argv[1]))["records"]}
wrong = [f"{name}: {got[name]['status'] if name in got else 'no record'}, should be {status}"
         for name, status in expected.items() if name not in got or got[name]["status"] != status]
wrong += [f"{name}: a failed kernel has a time" for name, status in expected.items() if status != "ok" and got.get(name, {}).get("timing")]
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
PY

# What asks for y says so.
"$NORMBENCH" probe rmsnorm_backward_plain >"$WORK/probe" 2>&1 && { echo "probe took a backward kernel"; exit 1; }
grep -q "forward" "$WORK/probe"
