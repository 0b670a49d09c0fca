#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The gate, its report as the job's summary, and its verdict as an output. What could not be decided or compared is a warning; what is wrong or slower
# fails with the gate's own exit code.
set -uo pipefail
arguments=()
add() { # OPTION WORDS: once for each word
    local option=$1 word
    for word in $2; do arguments+=("$option" "$word"); done
}
add --baseline "$BASELINE"
add --candidate "$CANDIDATE"
add --function "$FUNCTION"
add --budget "$BUDGET"
code=0 verdict=
# Of an earlier gate of the job: they stay where the options are refused.
rm -f "$OUT"/{gate.md,gate.json,gate.xml,gate.bencher.json,gate.benchmark_action.json,samples.jsonl}
# shellcheck disable=SC2086 # options are words
"$PROGRAM" gate "${arguments[@]}" $OPTIONS --out "$OUT" || code=$?
if [ -f "$OUT/gate.md" ]; then
    cat "$OUT/gate.md" >>"$GITHUB_STEP_SUMMARY"
    verdict=$(sed -n 's/^## normbench gate: //p' "$OUT/gate.md" | head -n 1)
fi
{
    echo "verdict=$verdict"
    echo "exit-code=$code"
} >>"$GITHUB_OUTPUT"
case "$code $verdict" in
"0 "*) ;;
"1 INCONCLUSIVE" | "1 SUSPECT") echo "::error::not everything could be decided, which --inconclusive fail makes a failure" ;;
"1 NOT COMPARABLE" | "1 ") echo "::error::not everything could be compared or decided, which an option makes a failure" ;;
"1 "*) echo "::error::something is wrong or less accurate than before" ;;
"2 "*) echo "::error::the gate cannot be run as asked" ;;
"3 "*) echo "::error::something is slower than before" ;;
"4 "*) echo "::warning::not everything could be decided in the time there was" ;;
"5 "*) echo "::warning::what is new, gone or of another ABI was not compared" ;;
"77 "*) echo "::warning::this runner lacks what the kernels need" ;;
*) echo "::error::the gate was ended: exit code $code" ;;
esac
case $code in 4 | 5 | 77) exit 0 ;; *) exit $code ;; esac
