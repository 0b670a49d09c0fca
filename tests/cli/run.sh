#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every other script of this folder: 0 is a pass, 77 a skip (its last line says why), anything else a failure.
# A script finds the program in $NORMBENCH, the build folder in $BUILD, a folder of its own in $WORK.
set -u
cd "$(dirname "$0")/../.." || exit 1
export BUILD=${BUILD:-build}
export NORMBENCH=$PWD/$BUILD/normbench
case $BUILD in /*) NORMBENCH=$BUILD/normbench ;; esac
export NO_COLOR=1
export NORMBENCH_TUNING=none # a tuning of the user's would be in every replay line
passed=0 failed=0 skipped=0
for script in tests/cli/*.sh; do
    [ "$script" = tests/cli/run.sh ] && continue
    WORK=$(mktemp -d)
    export WORK
    start=$SECONDS
    timeout 300 bash "$script" >"$WORK/log" 2>&1
    code=$?
    case $code in
    0) passed=$((passed + 1)); echo "ok    $script ($((SECONDS - start)) s)" ;;
    77) skipped=$((skipped + 1)); echo "skip  $script: $(tail -n 1 "$WORK/log")" ;;
    *) failed=$((failed + 1)); echo "FAIL  $script (exit $code)"; sed 's/^/      /' "$WORK/log" | tail -n 40 ;;
    esac
    rm -rf "$WORK"
done
echo "cli: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
