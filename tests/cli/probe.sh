#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# normbench probe: kernels, plugins, formulas asked blind; a kernel that crashes costs its own answers; what it refuses.
. tests/support/cli.sh

"$NORMBENCH" probe rmsnorm_twopass_scalar_f32 >"$WORK/table" 2>"$WORK/err" || bad "table: exit $?"
[ -s "$WORK/err" ] && bad "says on stderr: $(cat "$WORK/err")"
for line in '^accumulator +f32, ' '^eps_place +inside, ' '^root +mul_recip, ' '^cast +undetermined: ' \
    '^rmsnorm_twopass_scalar_f32: sums in f32, '; do
    grep -qE "$line" "$WORK/table" || bad "no line /$line/"
done

# RMSNorm has no beta unless one is asked for.
grep -qE '^affine_fma +undetermined: no beta' "$WORK/table" || bad "a beta that is not passed: $(grep affine_fma "$WORK/table")"
"$NORMBENCH" probe rmsnorm_twopass_scalar_f32 --axis affine=gamma_beta >"$WORK/beta" || bad "with beta: exit $?"
grep -qE '^affine_fma +fma, ' "$WORK/beta" || bad "with beta: $(grep affine_fma "$WORK/beta")"

"$NORMBENCH" probe 'layernorm_twopass' --width scalar --dtype f32,bf16 --axis eps_place=outside --axis root=div_sqrt --format json \
    >"$WORK/json" || bad "json: exit $?"
/usr/bin/python3 - "$WORK/json" <<'PY' || bad "json: not as promised"
import json, sys
probes = json.load(open(sys.argv[1]))["probes"]
assert sorted(p["variant"] for p in probes) == ["layernorm_twopass_scalar_bf16", "layernorm_twopass_scalar_f32"]
for p in probes:
    assert p["status"] == "ok" and p["summary"] and p["calls"] > 100, p
    known = {a["question"]: a["value"] for a in p["answers"]}
    assert (known["eps_place"], known["root"], known["variance"]) == ("outside", "div_sqrt", "twopass"), known
    assert all(a["evidence"] and a["meaning"] for a in p["answers"])
    assert all((a["value"] is None) == (a["confidence"] is None) for a in p["answers"])
PY

plugins=$BUILD/tests/plugins
"$NORMBENCH" probe "$plugins/example.so" >"$WORK/example" || bad "example.so: exit $?"
grep -qE '^accumulator +f32, ' "$WORK/example" || bad "example.so: $(cat "$WORK/example")"
# A kernel that crashes, and one that is well.
cp "$plugins/crash.so" "$plugins/example.so" "$WORK/"
ends 1 "" "$NORMBENCH" probe '*:*' --plugin "$WORK/crash.so" --plugin "$WORK/example.so"
grep -qE '^crashed: ' "$WORK/out" || bad "does not say what crashed: $(grep -A2 crash "$WORK/out")"
grep -qE '^example:example_f32: sums in f32' "$WORK/out" || bad "the crash cost another's answers"

refuses "WHAT" probe
refuses "near it: rmsnorm_twopass," probe rmsnorm_twopas
refuses "--dtype 'f17'.*f16" probe rmsnorm_twopass --dtype f32,f17
refuses "--width 'v5'" probe rmsnorm_twopass --width v5
refuses "--axis .root=sqrt.*div_sqrt" probe rmsnorm_twopass --axis root=sqrt
refuses "--format xml: one of table, json" probe rmsnorm_twopass --format xml
refuses "No such file|cannot" probe ./missing.so

ends 77 "norms over rows" "$NORMBENCH" probe 'batchnorm_twopass' --width scalar --dtype f32
exit "$failed"
