#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the unit tests: tests/unit.sh PROGRAM [CRITERION'S OPTIONS]. Says how far it is every ten seconds, what failed and what was skipped, with the
# reasons, then the ten slowest tests by wall time; those with parameters count together there. TOOK: a file for these times, in place of print.
set -u
export COLUMNS=1000        # notes are whole
export NORMBENCH_TUNING=none # what a played clock tells must not stay in the cache of the user
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" --verbose >"$log" 2>&1 &
program=$!
while sleep 10 && kill -0 "$program" 2>/dev/null; do echo "unit tests: $(grep -c '^\[PASS\]' "$log") passed so far"; done &
progress=$!
wait "$program"
code=$?
kill "$progress" 2>/dev/null
wait "$progress" 2>/dev/null
# An assertion of ours is a failure, in a worker too, whatever the test made of it.
! grep -E '(src|cmd|reports)/[a-z0-9_/]+\.c:[0-9]+: .*Assertion `' "$log" || code=1
# What a filter leaves out is disabled, which is no skip. What the program said is shown where something failed.
[ "$code" = 0 ] && said='^normbench: ' || said='^$'
grep -vE "$said|^\[(RUN |PASS)\]|^\[SKIP\].*: Test is disabled\$|^\[====\] |^\[----\] *\$" "$log"
sed -nE 's/^\[(PASS|FAIL)\] ([^ ]+::[^ ]+): \(([0-9.]+)s\)$/\3 \2/p' "$log" |
    awk '{ time[$2] += $1; n[$2]++ } END { for (t in time) printf "%.2f %s%s\n", time[t], t, (n[t] > 1 ? " (" n[t] " of them)" : "") }' >"${TOOK:-$log.took}"
[ -n "${TOOK-}" ] || { tests/took.sh "$log.took"; rm -f "$log.took"; }
failed=$(sed -nE 's/^\[====\] Synthesis:.* Failing: ([0-9]+) \| Crashing: ([0-9]+).*/\1 + \2/p' "$log")
skipped=$(grep '^\[SKIP\]' "$log" | grep -vc ': Test is disabled$')
echo "unit tests: $(grep -c '^\[PASS\]' "$log") passed, $((${failed:-0})) failed, $skipped skipped"
exit "$code"
