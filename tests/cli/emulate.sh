#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Designs on the command line: what comes out is JSON and tables, the figures are those of the formats, mistakes are named.
. tests/support/cli.sh

refuses "DESIGN is missing" emulate
refuses "did you mean 'llama'" emulate lama
refuses "did you mean 'store'" emulate rmsnorm/stroe:bf16
refuses "bf17.*is not one of .*bf16" emulate rmsnorm/store:bf17
refuses "eps:-1" emulate rmsnorm --eps -1
refuses "variance" emulate rmsnorm/variance:onepass
refuses "did you mean normal" emulate rmsnorm --data norml
refuses "--rows 0" emulate rmsnorm --rows 0
refuses "whole number" emulate rmsnorm --n 1.5
refuses "table, markdown" emulate rmsnorm --format yaml
refuses "takes no DESIGN" emulate rmsnorm --list
refuses "--affine" emulate rmsnorm --affine gama
refuses "shape|columns" emulate rmsnorm --data minilm_embed --n 17
refuses "--quantize" emulate rmsnorm --quantize e4m4

"$NORMBENCH" emulate --list >"$WORK/list" 2>"$WORK/err" || bad "emulate --list fails"
grep -q "^llama " "$WORK/list" && grep -q "^store_round " "$WORK/list" && [ ! -s "$WORK/err" ] || bad "emulate --list: $(head -3 "$WORK/list")"

"$NORMBENCH" emulate llama/store:f16 truncate naive --rows 8 --n 256 --format json >"$WORK/e.json" 2>"$WORK/err" ||
    bad "emulate --format json: $(cat "$WORK/err")"
python3 - "$WORK/e.json" <<'PYTHON' || failed=1
import json, sys
e = json.load(open(sys.argv[1]))
assert (e["data"], e["rows"], e["n"]) == ("scales", 8, 256), e
llama, truncate, naive = e["designs"]
assert llama["design"] == "llama/store:f16" and llama["accuracy"]["dtype"] == "f16", llama["design"]
assert llama["accuracy"]["worst_ratio"] is None and llama["no_bound"], "bf16 weights in an f16 design"
assert 0.9 < truncate["accuracy"]["max_ulp"] <= 1.001 and -0.8 < truncate["accuracy"]["bias_u"] < -0.6, truncate
assert truncate["no_bound"] and truncate["accuracy"]["n_beyond"] is None, truncate["no_bound"]
assert naive["no_bound"] is None and naive["accuracy"]["worst_ratio"] <= 1, naive["accuracy"]
PYTHON

"$NORMBENCH" emulate ideal --data minilm_embed --format csv >"$WORK/real.csv" 2>"$WORK/err" || bad "real rows: $(cat "$WORK/err")"
grep -q "^ideal,0.5" "$WORK/real.csv" || bad "real rows: $(cat "$WORK/real.csv")"
"$NORMBENCH" emulate D --rows 4 --n 128 --seed 7 >"$WORK/a" && "$NORMBENCH" emulate D --rows 4 --n 128 --seed 7 >"$WORK/b"
cmp -s "$WORK/a" "$WORK/b" || bad "the same seed gives other figures"

"$NORMBENCH" emulate rmsnorm llama --quantize int8,float8_e4m3fn --data massive --rows 8 --n 1024 --format json >"$WORK/q.json" 2>"$WORK/err" ||
    bad "--quantize: $(cat "$WORK/err")"
python3 - "$WORK/q.json" <<'PYTHON' || failed=1
import json, sys
q = json.load(open(sys.argv[1]))["quantized"]
at = {(r["values"], r["to"], r["scale"]): r for r in q}
assert len(q) == 3 * (2 + 3), len(q)
assert at["x", "e4m3", "none"]["beyond"] > 0 and at["rmsnorm", "e4m3", "none"]["beyond"] == 0, "massive activations"
assert at["x", "int8", "tensor"]["lost"] > 0.9, at["x", "int8", "tensor"]
PYTHON
"$NORMBENCH" emulate rmsnorm --quantize all --rows 2 --n 64 | grep -q "^rmsnorm *int8 *row " || bad "--quantize as a table"
exit "$failed"
