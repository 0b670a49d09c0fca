#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# normbench tolerance: every format of output, a test that compiles and runs as pasted, and what it refuses.
. tests/support/cli.sh
few=(--n 256 --rows 16 --trials 8)

"$NORMBENCH" tolerance --dtype bf16 "${few[@]}" >"$WORK/table" 2>"$WORK/err" || bad "table: exit $?: $(cat "$WORK/err")"
grep -qE 'derived +rtol 0\.00(39|4)' "$WORK/table" || bad "table: $(head -n 5 "$WORK/table")"
grep -qE '^  truncates +all' "$WORK/table" || bad "table: a truncating store is not seen"

"$NORMBENCH" tolerance --op layernorm --dtype f16 --eps 1e-6 --data 'offset(10)' "${few[@]}" --format json >"$WORK/json" || bad "json: exit $?"
/usr/bin/python3 - "$WORK/json" <<'PY' || bad "json: not as promised"
import json, sys
r = json.load(open(sys.argv[1]))
names = [c["name"] for c in r["criteria"]]
assert names[:4] == ["derived", "calibrated", "ulp", "mean error"] and "torch assert_close" in names, names
assert r["correct"] and all(s["alarms"]["derived"] and s["alarms"]["derived"]["seen"] == 0 for s in r["correct"])
assert any(not s["name"].startswith("emulated") for s in r["correct"]), "no built-in kernel was run"
assert {m["name"] for m in r["mistakes"]} >= {"divides by n - 1", "rounds the mean", "one pass", "no beta"}
assert r["uncovered"] < 0.005 * r["held_out"] and r["eps"] == 1e-6, r["uncovered"]
PY

"$NORMBENCH" tolerance --kernel rmsnorm_twopass_scalar_f32 "${few[@]}" --format c >"$WORK/check.h" || bad "c: exit $?"
cat >"$WORK/check.c" <<'C'
#include "check.h"
int main(void) {
    double want[256], got[256];
    for (int i = 0; i < 256; i++) got[i] = want[i] = (i - 128) / 64.0;
    if (norm_output_differs(got, want, 2, 128) != 0) return 1;
    got[200] *= 1.001;
    if (norm_output_differs(got, want, 2, 128) != 1) return 2;
    for (int i = 0; i < 256; i++) got[i] = want[i] * (1 + 1e-2);
    return norm_output_differs(got, want, 2, 128) != 0 ? 0 : 3;
}
C
${CC:-gcc} -Wall -Wextra -Werror -o "$WORK/check" "$WORK/check.c" -lm && "$WORK/check" || bad "c: as pasted it gives $?"
for language in torch numpy; do
    "$NORMBENCH" tolerance --dtype f32 "${few[@]}" --format $language >"$WORK/snippet.py" || bad "$language: exit $?"
    /usr/bin/python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$WORK/snippet.py" || bad "$language: no Python"
done

refuses "--dtype" tolerance --n 64
refuses "did you mean|f32, f16, bf16" tolerance --dtype f17
refuses "f32, f16 and bf16" tolerance --design rmsnorm/store:e4m3
refuses "leave out" tolerance --kernel rmsnorm_twopass_scalar_f32 --dtype f32
refuses "no kernel" tolerance --kernel rmsnorm_nothing
refuses "rmsnorm, prmsnorm" tolerance --op dyt --dtype f32
refuses "whole number" tolerance --dtype f32 --n 2.5
refuses "not known" tolerance --dtype f32 --data nothing
refuses "every row .* is lost" tolerance --design rmsnorm/all:f16 --data 'constant(300)' --n 64
refuses "exact, rounded, peer" tolerance --dtype f32 --reference same
refuses "table, json, torch" tolerance --dtype f32 --format xml

# A plugin's kernel, which is called in a process of its own.
plugins=$BUILD/tests/plugins
"$NORMBENCH" tolerance --plugin "$plugins/example.so" "${few[@]}" >"$WORK/plugin" 2>"$WORK/err" || bad "example.so: exit $?: $(cat "$WORK/err")"
grep -q '^example:example_f32, at most 256 roundings in a chain' "$WORK/plugin" && grep -qE 'correct kernels run: example:example_f32 \(0\.' "$WORK/plugin" ||
    bad "example.so: $(cat "$WORK/plugin")"
code=0
"$NORMBENCH" tolerance --plugin "$plugins/crash.so" "${few[@]}" >"$WORK/out" 2>"$WORK/err" || code=$?
[ "$code" = 1 ] && grep -q 'crash:.*ended by signal' "$WORK/err" || bad "crash.so: exit $code: $(cat "$WORK/err")"
code=0
"$NORMBENCH" tolerance --plugin "$plugins/hang.so" --case-timeout 1 "${few[@]}" >"$WORK/out" 2>"$WORK/err" || code=$?
[ "$code" = 1 ] && grep -q 'hang:.*did not end within 1 s' "$WORK/err" || bad "hang.so: exit $code: $(cat "$WORK/err")"
exit "$failed"
