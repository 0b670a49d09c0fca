#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# normbench tolerance: every format of output, a test that compiles and runs as pasted, and what it refuses.
. tests/support/cli.sh
few=(--n 256 --rows 16 --trials 8)

"$NORMBENCH" tolerance --dtype bf16 "${few[@]}" >"$WORK/table" 2>"$WORK/err" || bad "table: exit $?: $(cat "$WORK/err")"
grep -qE 'derived +rtol 0\.00(39|4)' "$WORK/table" || bad "table: $(head -n 5 "$WORK/table")"
grep -qE '^  use +the derived line: ' "$WORK/table" || bad "table: which limit a test should have is not said"
grep -qE '^truncates +all' "$WORK/table" || bad "table: a truncating store is not seen"

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

many=(--n 96 --rows 16 --trials 16)
# Printed tests run as they stand, for every formula, and see a kernel that casts before the weight.
has() { /usr/bin/python3 -c "import $1" 2>/dev/null; }
run_printed() {
    case $1 in
    c) ${CC:-gcc} -Wall -Wextra -Werror -o "$WORK/printed" "$WORK/printed.c" -lm && "$WORK/printed" ;;
    *) ! has "$1" || /usr/bin/python3 "$WORK/printed.$1" ;;
    esac
}
printed() { # OPTIONS..
    for language in c numpy torch; do
        "$NORMBENCH" tolerance "$@" "${many[@]}" --format $language >"$WORK/printed.$language" || bad "$language, $*: exit $?"
        [ $language = c ] || grep -q '^def test_norm():' "$WORK/printed.$language" || bad "$language: nothing that pytest collects"
        [ $language = c ] || /usr/bin/python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$WORK/printed.$language" || bad "$language: no Python"
        run_printed $language >"$WORK/out" 2>&1 || bad "$language, $*: as it stands it gives $?: $(cat "$WORK/out")"
    done
}
printed --op layernorm --dtype f32
printed --op prmsnorm --dtype bf16 --reference rounded
printed --op l2norm --dtype f16 --affine none
printed --design llama --reference peer
printed --dtype bf16
sed 's/y\[i\] = stored(y\[i\] \* w\[i\] + b\[i\])/y[i] = stored(stored(y[i]) * stored(w[i]) + b[i])/' "$WORK/printed.c" >"$WORK/other.c"
cmp -s "$WORK/printed.c" "$WORK/other.c" && bad "c: the kernel is not where it was"
mv "$WORK/other.c" "$WORK/printed.c"
code=0
run_printed c >"$WORK/out" 2>&1 || code=$?
[ $code != 0 ] && grep -qE "closer to a cast before|beyond|biased" "$WORK/out" || bad "c: a cast before the weight passes: $(cat "$WORK/out")"

# The verdict has a line of its own; the kernel under test has no part in the calibration; too few tests say so.
"$NORMBENCH" tolerance --kernel rmsnorm_twopass_scalar_f32 "${many[@]}" >"$WORK/table" || bad "kernel: exit $?"
grep -qE '^rmsnorm_twopass_scalar_f32 KEEPS it: 0\.[0-9]+ of the limit' "$WORK/table" || bad "verdict: $(tail -n 1 "$WORK/table")"
"$NORMBENCH" tolerance --kernel rmsnorm_twopass_scalar_f32 "${few[@]}" | grep -q 'calibrated  too few tests' || bad "8 tests calibrate"
plugins=$BUILD/tests/plugins
wrong=(--plugin "$plugins/mistakes.so" "${many[@]}")
ends 1 "" "$NORMBENCH" tolerance "${wrong[@]}" --kernel mistakes:rms_f32_eps_outside --data 'scale(1e-2)'
grep -qE 'EXCEEDS it by [0-9.]+x at row [0-9]+' "$WORK/out" || bad "a wrong kernel: $(tail -n 1 "$WORK/out")"
ends 1 "" "$NORMBENCH" tolerance "${wrong[@]}" --kernel mistakes:rms_bf16_truncates
tr -s " \n" " " <"$WORK/out" | grep -q "on one side" || bad "a truncating kernel: $(tail -n 1 "$WORK/out")"
rm -f "$WORK/printed"*
refuses "--dtype" tolerance --n 64
refuses "fp8.* is not one of f32, f16, bf16$" tolerance --dtype fp8
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
"$NORMBENCH" tolerance --plugin "$plugins/example.so" "${few[@]}" >"$WORK/plugin" 2>"$WORK/err" || bad "example.so: exit $?: $(cat "$WORK/err")"
grep -q '^example:example_f32, at most 256 roundings in a chain' "$WORK/plugin" && grep -qE 'correct kernels run: example:example_f32 \(0\.' "$WORK/plugin" ||
    bad "example.so: $(cat "$WORK/plugin")"
ends 1 'crash:.*ended by signal' "$NORMBENCH" tolerance --plugin "$plugins/crash.so" "${few[@]}"
ends 1 'hang:.*did not end within 1 s' "$NORMBENCH" tolerance --plugin "$plugins/hang.so" --case-timeout 1 "${few[@]}"
# Ended in the fourth of the tests that count, which never ends: three were made.
NORMBENCH_TEST_FAULT=run:interrupt ends 143 'ended by signal 15' "$NORMBENCH" tolerance --plugin "$plugins/around.so" "${few[@]}"
grep -q 'mistakes detected, of 3 tests' "$WORK/out" || bad "a plugin's kernel, interrupted: $(cat "$WORK/out")"
exit "$failed"
