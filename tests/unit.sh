#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the unit tests: tests/unit.sh PROGRAM [CRITERION'S OPTIONS]. Says what failed and why, then the ten slowest tests by wall time;
# those with parameters count together.
set -u
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" --verbose >"$log" 2>&1
code=$?
grep -vE '^\[(RUN |PASS|SKIP)\]|^\[====\] Running|^\[----\] *$' "$log"
echo "the slowest tests (seconds):"
sed -nE 's/^\[(PASS|FAIL)\] ([^ ]+::[^ ]+): \(([0-9.]+)s\)$/\3 \2/p' "$log" |
    awk '{ time[$2] += $1; n[$2]++ } END { for (t in time) printf "%8.2f  %s%s\n", time[t], t, (n[t] > 1 ? " (" n[t] " of them)" : "") }' |
    sort -rn | head -n 10
exit "$code"
