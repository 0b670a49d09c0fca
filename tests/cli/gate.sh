#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The gate from outside: what checks, counted instructions and its own files decide, by exit code and in words.
. tests/support/gate.sh
plugins=$BUILD/tests/plugins
config() { printf '{ "blocks": [ { "op": "rmsnorm", "shape": "64x64" } ]%s }\n' "${2:+,
  \"gate\": $2}" >"$WORK/$1.json"; }
config config
options=(--config "$WORK/config.json")
pair=(--baseline "$plugins/gate_old.so" --candidate "$plugins/gate_new.so")
kernels() { # NAMES: --kernel options into the array chosen
    local name
    chosen=()
    for name in "$@"; do chosen+=(--kernel "gated_$name"); done
}

# ---- wrong, and fast or not: all in one gate ------------------------------------------------------------------------------------
kernels zeros rough crashes strays changes skips fails gone added
gives 1 "WRONG gated_zeros_f32.*beyond the bound" "${pair[@]}" "${chosen[@]}"
says "LESS ACCURATE gated_rough_f32.*ulp"
says "WRONG gated_crashes_f32[^:]*: candidate while timed: crashed"
says "WRONG gated_strays_f32[^:]*: candidate while timed: wrote_outside"
says "WRONG gated_changes_f32[^:]*: candidate while timed: changed_input"
says "WRONG gated_skips_f32[^:]*: candidate while timed: wrong_when_timed"
says "WRONG gated_fails_f32[^:]*: candidate while timed: returned_error"
says "NOT COMPARABLE gated_gone_f32[^:]*: the candidate has no such kernel any more"
says "NOT COMPARABLE gated_added_f32[^:]*: the baseline has no such kernel"
gives 1 "WRONG.*candidate while timed: timed_out" "${pair[@]}" --kernel gated_hangs --case-timeout 2
gives 5 "" "${pair[@]}" --kernel gated_gone
gives 0 "" "${pair[@]}" --kernel gated_gone --not-comparable pass
gives 1 "NOT COMPARABLE counts as a failure: --not-comparable fail" "${pair[@]}" --kernel gated_gone --not-comparable fail

# ---- the same, byte for byte, whatever its symbols and flags -----------------------------------------------------------------
strip -o "$WORK/stripped.so" "$plugins/gate_old.so" 2>/dev/null || cp "$plugins/gate_old.so" "$WORK/stripped.so"
cp "$WORK/stripped.so" "$WORK/again.so"
gives 0 "1 case: 1 PASS .identical code." --baseline "$WORK/stripped.so" --candidate "$WORK/again.so" --kernel gated_zeros
grep -q 'launches' "$WORK/err" && bad "files that are equal byte for byte were timed"

# ---- timed, among them a sample that suits the baseline alone: rows of a long call, to a kernel whose units are no rows ----------------
kernels doubled waits units
timed "gated_doubled_f32 gated_units_f32 gated_waits_f32" "${pair[@]}" "${chosen[@]}"

# ---- verdicts of times that are played ---------------------------------------------------------------------------------------------
old=$plugins/gate_old.so new=$plugins/gate_new.so
verdict() { # CODE PATTERN KERNEL BASELINE CANDIDATE LINES-OF-THE-TABLE..
    printf '%s\n' "${@:6}" "copy* 5000" "* 20000" "reading 0" >"$WORK/played"
    NORMBENCH_PLAYED=$WORK/played gives "$1" "$2" --baseline "$4" --candidate "$5" --kernel "gated_$3" --time-identical --screen-launches 7 --confirm-launches 12 --blocks 8
}
shared="contended 0.002 0.004 0.004"
verdict 3 "REGRESSION.*gated_steady_f32: slower by 2.0% at least" steady "$old" "$new" "candidate:* 20400"
verdict 0 "PASS gated_steady_f32 .0.00%" steady "$old" "$old"
verdict 0 "PASS gated_steady_f32" steady "$old" "$new" "* 20000 0 spread=0.01" "slice 0.01 0.004"
verdict 4 "INCONCLUSIVE gated_steady_f32: 100% of the pairs were interrupted" steady "$old" "$new" "switch 0.00001"
# A core that is another's, too, half of the time, which costs the candidate less.
verdict 3 "REGRESSION gated_steady_f32 .2.00%" steady "$old" "$new" "candidate:* 20400 0 contended=1.2" "* 20000 0 contended=1.6" "$shared"
verdict 0 "PASS gated_steady_f32 .0.00%" steady "$old" "$new" "candidate:* 20000 0 contended=1.2" "* 20000 0 contended=1.6" "$shared"
# As fast as half the instructions explain; faster than they do, which single steps count (x86-64).
verdict 0 "IMPROVED gated_doubled_f32 -50.0%" doubled "$new" "$old" "candidate:* 10000"
verdict 0 "IMPROVED gated_steady_f32 -10.0%" steady "$old" "$new" "candidate:* 18000"
verdict 4 "SUSPECT gated_steady_f32: beside the candidate the baseline takes longer than alone: by 30.0%" steady "$old" "$new" "candidate:* 22000" "* 20000 0 beside=1.3"
verdict 4 "SUSPECT gated_steady_f32: faster than a copy of the same bytes: by 25.0% at least" steady "$old" "$new" "candidate:* 4000"
if [ "$(uname -m)" = x86_64 ]; then
    verdict 4 "SUSPECT gated_waits_f32: at most 12% of the baseline.s time for 1..% of its instructions" waits "$old" "$new" "copy* 1000" "candidate:* 2400"
fi

# ---- no time ---------------------------------------------------------------------------------------------------------------------
out_of_time=("${pair[@]}" --kernel gated_steady --time-identical --budget 0.001)
gives 4 "INCONCLUSIVE.*time ran out" "${out_of_time[@]}"
gives 0 "" "${out_of_time[@]}" --inconclusive pass
gives 1 "INCONCLUSIVE counts as a failure: --inconclusive fail" "${out_of_time[@]}" --inconclusive fail
gives 5 "" "${out_of_time[@]}" --kernel gated_gone

# ---- no place to keep anything: the verdict is printed and stands, a PASS is none ------------------------------------------------------
for case in "3 REGRESSION candidate:*_20400" "2 PASS candidate:*_20000"; do
    read -r code word played <<<"$case"
    mkdir -p "$WORK/taken/gate.json"
    options+=(--out "$WORK/taken")
    verdict "$code" "$word gated_steady_f32" steady "$old" "$new" "${played/_/ }"
    says 'taken/gate.json: is a folder'
    options=(--config "$WORK/config.json")
done

# ---- budgets of instructions -------------------------------------------------------------------------------------------------
budget() { # CODE PATTERN KERNEL GATE-SETTINGS
    config budget "$4"
    gives "$1" "$2" "${pair[@]}" --kernel "gated_$3" --config "$WORK/budget.json" --budget 0.001 --inconclusive pass
}
budget 3 'REGRESSION.*instructions: [0-9]+ against the baseline.s [0-9]+ \(.*"gated_d\*" allows \+2%' doubled \
    '{ "instructions": { "gated_d*": "+2%" } }'
budget 3 'instructions: [0-9]+, "\*" allows 10' steady '{ "instructions": { "*": 10 } }'
budget 0 "" steady '{ "instructions": { "gated_d*": "+0%", "*_f32*": 90000 } }'
! grep -q "instructions:" "$WORK/out" || bad "a budget that is kept is held against it"
budget 2 'budget.json:2: unknown key "instruction"; did you mean "instructions"' steady '{ "instruction": {} }'
budget 2 "budget.json:2.*'2%' is no budget" steady '{ "instructions": { "*": "2%" } }'
budget 2 'budget.json:2.*it must be an object' steady '5'
budget 2 'must be larger than the one above which' steady '{ "fail_margin": 4 }'

# ---- several at once: 1, 3, 5, 4; a REGRESSION by instructions ------------------------------------------------------------------------
config priority '{ "instructions": { "gated_doubled*": "+2%" } }'
priority() { # CODE KERNELS...
    kernels "${@:2}"
    gives "$1" "" "${pair[@]}" "${chosen[@]}" --config "$WORK/priority.json" --budget 0.001
}
priority 1 doubled zeros gone
priority 1 rough gone
priority 3 doubled gone steady
options+=(--inconclusive fail)
priority 3 doubled steady
priority 1 gone steady
options=(--config "$WORK/config.json")

# ---- files that are no builds, or not of this ABI -----------------------------------------------------------------------------
good=$plugins/gate_old.so
gives 2 "nonexistent.so" --baseline /nonexistent.so --candidate "$good"
gives 2 "config.json is not a build of kernels" --baseline "$good" --candidate "$WORK/config.json"
says "normbench: error: $WORK/config.json: cannot be loaded as a shared object"
gives 2 "normbench: error: $plugins/no_export.so: does not export normbench_kernels" --baseline "$plugins/no_export.so" --candidate "$good"
says "no_export.so is not a build of kernels that can be compared; to compare its functions, name them by --function NAME"
! grep -q normbench-gate- "$WORK/err" || bad "an error names the gate's own copy of a file"
gives 5 "ABI" --baseline "$plugins/bad_abi.so" --candidate "$good"
gives 1 "ABI" --baseline "$plugins/bad_abi.so" --candidate "$good" --not-comparable fail
gives 5 "ABI" --baseline "$good" --candidate "$plugins/bad_abi.so"
gives 2 "layouts of one source" --baseline "$good" --baseline "$plugins/gate_new.so" --candidate "$good"
gives 2 "no kernel has this name" --baseline "$good" --candidate "$good" --kernel nothing_like_it

# ---- one name in two builds ------------------------------------------------------------------------------------------------
global=(--baseline "$plugins/gate_global_old.so" --candidate "$plugins/gate_global_new.so")
gives 1 "WRONG.*gated_global_f32" "${global[@]}"
gives 5 "the candidate is right" --baseline "$plugins/gate_global_new.so" --candidate "$plugins/gate_global_old.so"
LD_PRELOAD=$plugins/gate_global_old.so gives 2 "gate_global_(old|new).so: its gate_test_.* is bound to that of .*gate_global_old" "${global[@]}"
gives 2 "gate_test_factor is bound" --baseline "$plugins/gate_unique.so" --candidate "$plugins/gate_unique.so"

[ -z "$(ls -d "$WORK"/normbench-gate-* 2>/dev/null)" ] || bad "copies of builds stay behind: $(ls -d "$WORK"/normbench-gate-*)"
exit "$failed"
