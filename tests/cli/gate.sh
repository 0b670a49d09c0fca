#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The gate from outside: what it says of each way in which a candidate can be worse, by exit code and in words. Times are compared only
# where one is twice the other.
set -u
failed=0
plugins=$BUILD/tests/plugins
cat >"$WORK/config.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "shape": "16x256" } ] }
JSON
export TMPDIR=$WORK
fail() {
    echo "gate: $*"
    cat "$WORK/out" "$WORK/err"
    failed=1
}
# CODE PATTERN ARGUMENTS...: exit code, and what stdout or stderr says
gives() {
    local code=$1 pattern=$2 got=0
    shift 2
    "$NORMBENCH" gate --config "$WORK/config.json" "$@" >"$WORK/out" 2>"$WORK/err" || got=$?
    [ "$got" = "$code" ] || { fail "$*: exit $got, wanted $code"; return; }
    tr -s ' \n' ' ' <"$WORK/out" | cat - "$WORK/err" | grep -qE -- "$pattern" || fail "$*: no /$pattern/"
}
# The same for what is decided by times: while something else disturbs more of the pairs than the gate allows, it is asked again.
gives_by_time() {
    local until=$((SECONDS + 120)) before=$failed
    while :; do
        gives "$@" >"$WORK/said"
        [ "$failed" != "$before" ] && [ $SECONDS -lt $until ] && grep -q 'saw a switch or a migration' "$WORK/out" || break
        failed=$before
    done
    cat "$WORK/said"
}
pair=(--baseline "$plugins/gate_old.so" --candidate "$plugins/gate_new.so")
kernels() { # NAMES: --kernel options into the array chosen
    local name
    chosen=()
    for name in "$@"; do chosen+=(--kernel "gated_$name"); done
}

# ---- wrong, and fast or not ------------------------------------------------------------------------------------------------
verdict() { # CODE PATTERN KERNEL
    kernels "$3"
    gives "$1" "$2" "${pair[@]}" "${chosen[@]}" --case-timeout 2
}
verdict 1 "WRONG.*gated_zeros_f32.*beyond the bound" zeros
verdict 1 "LESS ACCURATE.*gated_rough_f32.*ulp" rough
verdict 1 "WRONG.*candidate while timed: crashed" crashes
verdict 1 "WRONG.*candidate while timed: timed_out" hangs
verdict 1 "WRONG.*candidate while timed: wrote_outside" strays
verdict 1 "WRONG.*candidate while timed: changed_input" changes
verdict 1 "WRONG.*candidate while timed: wrong_when_timed" skips
verdict 1 "WRONG.*candidate while timed: returned_error" fails
verdict 5 "NOT COMPARABLE.*the candidate has no such kernel any more" gone
verdict 5 "NOT COMPARABLE.*the baseline has no such kernel" added

# ---- the same, byte for byte, whatever its symbols and flags -----------------------------------------------------------------
strip -o "$WORK/stripped.so" "$plugins/gate_old.so" 2>/dev/null || cp "$plugins/gate_old.so" "$WORK/stripped.so"
cp "$WORK/stripped.so" "$WORK/again.so"
gives 0 "1 case: 1 PASS .identical code.; 0 s" --baseline "$WORK/stripped.so" --candidate "$WORK/again.so" --kernel gated_zeros
grep -q 'launches' "$WORK/err" && fail "files that are equal byte for byte were timed"

# ---- slower ----------------------------------------------------------------------------------------------------------------
# Small samples: what is twice as slow shows in them.
quick=(--screen-launches 8 --confirm-launches 14 --blocks 20)
gives_by_time 3 "REGRESSION.*gated_doubled_f32" "${pair[@]}" --kernel gated_doubled "${quick[@]}"
gives_by_time 0 "PASS.*gated_steady_f32" --baseline "$plugins/gate_old.so" --candidate "$plugins/gate_old.so" --kernel gated_steady \
    --pass-margin 50 --fail-margin 20 "${quick[@]}"

# ---- as fast as half the instructions explain, and no faster than a copy ------------------------------------------------------------
gives_by_time 0 "IMPROVED.*gated_doubled_f32" --baseline "$plugins/gate_new.so" --candidate "$plugins/gate_old.so" --kernel gated_doubled \
    "${quick[@]}"

# ---- faster than it can be: by its instructions, which single steps count (x86-64) ------------------------------------------------
improved=0
[ "$(uname -m)" != x86_64 ] || improved=4
gives_by_time $improved "(SUSPECT|IMPROVED).*gated_waits_f32" "${pair[@]}" --kernel gated_waits "${quick[@]}"
[ "$improved" = 0 ] || grep -q 'SUSPECT.*gated_waits_f32: at most .* % of the baseline.s time for .* % of its instructions' <(tr -s ' \n' ' ' <"$WORK/out") ||
    fail "no doubt about a speed that is not explained"
gives_by_time $improved "" "${pair[@]}" --kernel gated_waits "${quick[@]}" --inconclusive pass

# ---- budgets of instructions -------------------------------------------------------------------------------------------------
budget() { # CODE PATTERN KERNEL GATE-SETTINGS
    printf '{ "blocks": [ { "op": "rmsnorm", "shape": "16x256" } ],\n  "gate": %s }\n' "$4" >"$WORK/budget.json"
    gives "$1" "$2" "${pair[@]}" --kernel "gated_$3" --config "$WORK/budget.json" --budget 1
}
budget 3 'REGRESSION.*instructions: [0-9]+ against the baseline.s [0-9]+ \(.*"gated_d\*" allows \+2 %' doubled \
    '{ "instructions": { "gated_d*": "+2%" } }'
budget 3 'instructions: [0-9]+, "\*" allows 10' steady '{ "instructions": { "*": 10 } }'
printf '{ "blocks": [ { "op": "rmsnorm", "shape": "16x256" } ], "gate": { "instructions": { "gated_d*": "+0%%", "*_f32*": 90000 } } }' \
    >"$WORK/budget.json"
"$NORMBENCH" gate "${pair[@]}" --kernel gated_steady --config "$WORK/budget.json" --budget 1 >"$WORK/out" 2>"$WORK/err"
! grep -q "instructions:" "$WORK/out" || fail "a budget that is kept is held against it"
budget 2 'budget.json:2: unknown key "instruction"; did you mean "instructions"' steady '{ "instruction": {} }'
budget 2 "budget.json:2.*'2%' is no budget" steady '{ "instructions": { "*": "2%" } }'
budget 2 'budget.json:2.*it must be an object' steady '5'
budget 2 'must be larger than the one above which' steady '{ "fail_margin": 4 }'

# ---- a sample that suits the baseline alone: rows of a long call, to a kernel whose units are no rows ------------------------------
code=0
"$NORMBENCH" gate "${pair[@]}" --config "$WORK/config.json" --axis shape=320x1024 --kernel gated_units --fail-margin 50 --pass-margin 90 \
    --screen-launches 6 --confirm-launches 6 --blocks 4 >"$WORK/out" 2>"$WORK/err" || code=$?
[ "$code" != 1 ] || fail "units that are no rows"

# ---- several at once: 1, 3, 5, 4 -----------------------------------------------------------------------------------------------
loose=(--fail-margin 20 --pass-margin 50)
priority() { # CODE KERNELS...: gated_doubled is a REGRESSION by its instructions, however busy the machine is
    local code=$1
    shift
    kernels "$@"
    printf '{ "blocks": [ { "op": "rmsnorm", "shape": "16x256" } ], "gate": { "instructions": { "gated_doubled*": "+2%%" } } }' \
        >"$WORK/priority.json"
    gives "$code" "" "${pair[@]}" "${chosen[@]}" "${loose[@]}" "${quick[@]}" --config "$WORK/priority.json"
}
priority 1 doubled zeros gone
priority 1 rough gone
priority 3 doubled gone steady
gives 4 "INCONCLUSIVE.*time ran out" "${pair[@]}" --kernel gated_doubled --budget 1 --screen-launches 400
gives 0 "" "${pair[@]}" --kernel gated_doubled --budget 1 --screen-launches 400 --inconclusive pass
gives 1 "" "${pair[@]}" --kernel gated_doubled --budget 1 --screen-launches 400 --inconclusive fail
gives 5 "" "${pair[@]}" --kernel gated_doubled --kernel gated_gone --budget 1 --screen-launches 400

# ---- files that are no builds, or not of this ABI -----------------------------------------------------------------------------
good=$plugins/gate_old.so
gives 2 "nonexistent.so" --baseline /nonexistent.so --candidate "$good"
gives 2 "config.json is not a build of kernels" --baseline "$good" --candidate "$WORK/config.json"
gives 2 "^normbench: error: $WORK/config.json: cannot be loaded as a shared object" --baseline "$good" --candidate "$WORK/config.json"
gives 2 "^normbench: error: $plugins/no_export.so: does not export normbench_kernels" --baseline "$plugins/no_export.so" --candidate "$good"
! grep -q normbench-gate- "$WORK/err" || fail "an error names the gate's own copy of a file"
gives 2 "normbench_kernels" --baseline "$plugins/no_export.so" --candidate "$good"
gives 5 "ABI" --baseline "$plugins/bad_abi.so" --candidate "$good"
gives 5 "ABI" --baseline "$good" --candidate "$plugins/bad_abi.so"
gives 2 "layouts of one source" --baseline "$good" --baseline "$plugins/gate_new.so" --candidate "$good"
gives 2 "no kernel has this name" --baseline "$good" --candidate "$good" --kernel nothing_like_it

# ---- one name in two builds ------------------------------------------------------------------------------------------------
global=(--baseline "$plugins/gate_global_old.so" --candidate "$plugins/gate_global_new.so")
gives 1 "WRONG.*gated_global_f32" "${global[@]}"
gives 5 "the candidate is right" --baseline "$plugins/gate_global_new.so" --candidate "$plugins/gate_global_old.so"
preload() { LD_PRELOAD=$plugins/$1.so gives "${@:2}"; }
preload gate_global_old 2 "gate_global_(old|new).so: its gate_test_.* is bound to that of .*gate_global_old" "${global[@]}"
gives 2 "gate_test_factor is bound" --baseline "$plugins/gate_unique.so" --candidate "$plugins/gate_unique.so"

# ---- a build that is replaced while the gate runs -----------------------------------------------------------------------------
cp "$good" "$WORK/mine.so"
rm -rf "$WORK/run"
"$NORMBENCH" gate --config "$WORK/config.json" --baseline "$good" --candidate "$WORK/mine.so" --kernel gated_zeros --time-identical \
    "${loose[@]}" "${quick[@]}" --out "$WORK/run" >"$WORK/out" 2>"$WORK/err" &
gate=$!
for ((i = 0; i < 200; i++)); do
    [ ! -s "$WORK/run/samples.jsonl" ] || break
    sleep 0.05
done
cp "$plugins/gate_new.so" "$WORK/mine.so" # in place
wait "$gate"
code=$?
case $code in 0 | 4) ;; *) fail "a replaced build: exit $code" ;; esac
[ -z "$(ls -d "$WORK"/normbench-gate-* 2>/dev/null)" ] || fail "copies of builds stay behind: $(ls -d "$WORK"/normbench-gate-*)"

exit "$failed"
