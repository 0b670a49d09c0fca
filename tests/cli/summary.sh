#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A run ends with its summary (its lines are tests/reports/test_summary.c's): 24 lines of 80 cells at most, and every command in it works as it stands.
set -eu
export COLUMNS=80
cat >"$WORK/small.json" <<'JSON'
{ "launches": 6, "blocks_per_launch": 6, "sample_ms": 0.1,
  "blocks": [ { "kernel": ["rmsnorm_twopass", "layernorm_twopass"], "shape": "16x256", "dtype": "f32", "width": "256" } ] }
JSON
cd "$WORK"
case $NORMBENCH in /*) ;; *) NORMBENCH=$OLDPWD/$NORMBENCH ;; esac
"$NORMBENCH" run ./small.json --no-plots --no-counters --quiet --out run >summary
fails() { echo "$1"; cat summary; exit 1; }
[ "$(wc -l <summary)" -le 24 ] || fails "more than 24 lines"
! grep -E '^.{81}' summary || fails "a line of more than 80 cells"
"$NORMBENCH" report run --format summary --no-write --quiet >again
cmp summary again || fails "report prints another summary"

# As they stand, but for claims, which take their minutes.
grep -A 20 -E "^[^ ]*normbench[^ ]* " summary | grep -v " claims " >commands
[ -s commands ] || fails "no commands"
PATH=$(dirname "$NORMBENCH"):$PATH bash -eu commands >out 2>err || { cat out err; fails "a command does not work"; }

# The long table is there for the asking, and its lines fit as well.
"$NORMBENCH" report run --format table --no-write >table
grep -q "^kernel\|^case" table || { cat table; exit 1; }
