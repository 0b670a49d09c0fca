#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# normbench limits: the figures of one configuration in every format of output, exit codes, and what it refuses.
. tests/support/cli.sh

"$NORMBENCH" limits --dtype f16 --n 4096 --eps 1e-6 >"$WORK/table" 2>"$WORK/err" || bad "f16: exit $?"
[ -s "$WORK/err" ] && bad "f16 says on stderr: $(cat "$WORK/err")"
for line in 'a square overflows from +256 \|x\| +holds' 'sum of squares overflows from +4 rms +holds' \
    'eps is stored as +1.01327896e-06 eps +holds' 'stops at +2048 sum +holds' ' 0 do not'; do
    grep -qE "$line" "$WORK/table" || bad "f16: no line /$line/"
done

"$NORMBENCH" limits --design layernorm/store:bf16/acc:f32x8 --n 768 --format json --gamma 3 >"$WORK/json" || bad "json: exit $?"
/usr/bin/python3 - "$WORK/json" <<'PY' || bad "json: not as promised"
import json, sys
r = json.load(open(sys.argv[1]))
assert (r["op"], r["dtype"], r["n"]) == ("layernorm", "bf16", 768), r
lines = {l["id"]: l for l in r["limits"]}
assert len(lines) == len(r["limits"]) >= 13
assert lines["square_overflow"]["from"] == 2.0**64 and lines["square_overflow"]["state"] == "holds"
assert all(l["state"] in ("holds", "does not apply") for l in r["limits"]), [l for l in r["limits"] if l["state"] == "does not hold"]
assert all(l["meaning"] for l in r["limits"])
PY

"$NORMBENCH" limits --dtype e4m3 --n 64 --format markdown --filter range >"$WORK/md" || bad "markdown: exit $?"
grep -qF '| a square overflows from | 22 \|x\| |' "$WORK/md" || bad "markdown: $(head -n 5 "$WORK/md")"

refuses "--dtype" limits --n 64
refuses "f32, tf32" limits --dtype f17
refuses "whole number" limits --dtype f16 --n 1.5
refuses "--n 0" limits --dtype f16 --n 0
refuses "--eps -1" limits --dtype f16 --eps -1
refuses "rmsnorm or layernorm" limits --dtype f16 --op dyt
refuses "rmsnorm or layernorm" limits --dtype f16 --op nothing
refuses "to nearest" limits --design rmsnorm/round:sr
refuses "f64" limits --dtype f64
refuses "no line" limits --dtype f16 --filter nothing-matches
refuses "table, markdown, json" limits --dtype f16 --format xml
refuses "one argument too many" limits --dtype f16 more
exit "$failed"
