#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the unit tests: tests/unit.sh PROGRAM [CRITERION'S OPTIONS]. Says what failed and what was skipped, with the reasons, then the ten slowest
# tests by wall time; those with parameters count together there.
set -u
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" --verbose >"$log" 2>&1
code=$?
# What a filter leaves out is disabled, which is no skip.
grep -vE '^\[(RUN |PASS)\]|^\[SKIP\].*: Test is disabled$|^\[====\] Running|^\[----\] *$' "$log"
echo "the slowest tests (seconds):"
sed -nE 's/^\[(PASS|FAIL)\] ([^ ]+::[^ ]+): \(([0-9.]+)s\)$/\3 \2/p' "$log" |
    awk '{ time[$2] += $1; n[$2]++ } END { for (t in time) printf "%8.2f  %s%s\n", time[t], t, (n[t] > 1 ? " (" n[t] " of them)" : "") }' |
    sort -rn | head -n 10
failed=$(sed -nE 's/^\[====\] Synthesis:.* Failing: ([0-9]+) \| Crashing: ([0-9]+).*/\1 + \2/p' "$log")
skipped=$(grep '^\[SKIP\]' "$log" | grep -vc ': Test is disabled$')
echo "unit tests: $(grep -c '^\[PASS\]' "$log") passed, $((${failed:-0})) failed, $skipped skipped"
exit "$code"
