#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slow, 25 s: seven plugins, some of which are waited for.
# Whatever a plugin does, try ends with an answer about it.
. tests/support/cli.sh
plugins=$BUILD/tests/plugins
# FILE CODE PATTERN: exit code, and what stdout or stderr says
answers() {
    local code=0
    timeout 60 "$NORMBENCH" try "$plugins/$1.so" --no-peers --budget 5 --case-timeout 2 --out "$WORK/$1" >"$WORK/out" 2>"$WORK/err" || code=$?
    [[ $code = $2 ]] && cat "$WORK/out" "$WORK/err" | grep -qE -- "$3" || bad "$1: exit $code, wanted $2 and /$3/: $(cat "$WORK/out" "$WORK/err")"
}
answers crash 1 '^right\? +NO: crashed in'
answers hang 1 '^right\? +NO: timed_out in'
answers exit 1 '^right\? +NO: crashed in'
answers write_after 1 '^right\? +NO: wrote_outside in'
answers read_outside 1 '^right\? +NO: read_outside in'
answers late_crash 1 '^right\? +NO: crashed in'
answers question 1 '^right\? +NO: crashed in'
answers escapes '[01]' '^right\? '
grep -q "$(printf '[\001-\010\033]')" "$WORK/out" "$WORK/err" && bad "a command of a terminal was printed"
answers no_export 2 'does not export normbench_kernels'
answers bad_abi 2 'does not serve kernel ABI'
exit "$failed"
