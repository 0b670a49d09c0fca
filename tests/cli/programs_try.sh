#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Long, 10 s: try takes a program with kernels, and says what its language adds to a call.
. tests/support/cli.sh
"$NORMBENCH" try "$BUILD/tests/programs/norms" --kernel norm --no-peers --budget 5 --case-timeout 60 --out "$WORK/try" >"$WORK/out" 2>"$WORK/err" ||
    bad "exit $?: $(cat "$WORK/err")"
grep -q "^right?  *yes" "$WORK/out" || bad "not right: $(cat "$WORK/out")"
# On a machine so busy that the checks take all of the time nothing is timed.
grep -qE "^  of which  *C adds .* to a call|left out to hold the budget" "$WORK/out" "$WORK/err" || bad "no language: $(cat "$WORK/out")"
exit "$failed"
