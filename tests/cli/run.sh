#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the other scripts of this folder, as many at once as there are CPUs: 0 is a pass, 77 a skip (its last line says why), anything else
# a failure. A script finds the program, whose time is played (tests/support/played_time.h), in $NORMBENCH, the build folder in $BUILD ($BUILD_DIR: its path, with
# the program as users have it), a folder of its own in $WORK.
#
#   tests/cli/run.sh [long|NAME..]
#
# Without an argument all are run but those that say in a line of their own "# Long, 400 s: why", in seconds of CPU time, which long runs alone.
# TOOK: a file for what each took, in place of print.
set -u
cd "$(dirname "$0")/../.." || exit 1
export BUILD=${BUILD:-build}
BUILD_DIR=$(realpath "$BUILD")
export BUILD_DIR NORMBENCH=$BUILD_DIR/normbench-played
export NO_COLOR=1
export COLUMNS=1000 # lines are whole, tables too: what a terminal leaves out is tried by summary.sh and usage.sh
export NORMBENCH_TUNING=none # a tuning of the user's would be in every replay line

# One script: its result is said in one write, since others say theirs.
if [ "${1-}" = --one ]; then
    script=tests/cli/$2.sh
    WORK=$(mktemp -d)
    export WORK
    start=$SECONDS
    TIMEFORMAT='%0U %0S'
    { time timeout "${LIMIT:-900}" bash "$script" >"$WORK/log" 2>&1; } 2>"$WORK/time"
    code=$?
    cpu=$(awk '{ print $1 + $2 }' "$WORK/time")
    # An assertion of ours is a failure, in a worker too, whatever the script made of it.
    asserted=$(grep -rIhEs -m 1 '(src|cmd|reports)/[a-z0-9_/]+\.c:[0-9]+: .*Assertion `' "$WORK") && { code=1; echo "$asserted" >>"$WORK/log"; }
    took="$((SECONDS - start)) s, $cpu s of CPU"
    case $code in
    0) result=passed said="ok    $script ($took)" ;;
    77) result=skipped said="skip  $script: $(tail -n 1 "$WORK/log")" ;;
    *) result=failed said="FAIL  $script (exit $code, $took)"$'\n'$(sed 's/^/      /' "$WORK/log" | tail -n 40) ;;
    esac
    rm -rf "$WORK"
    printf '%s\n' "$said"
    echo "$result $((SECONDS - start)) $cpu $2" >>"$RESULTS"
    exit
fi

long=$(grep -l '^# Long, ' tests/cli/*.sh | grep -v cli/run.sh)
case ${1-} in
long) scripts=$long ;;
"") scripts=$(printf '%s\n' tests/cli/*.sh | grep -v cli/run.sh | grep -vxF "$long") ;;
*) scripts=$(printf 'tests/cli/%s.sh\n' "$@") ;;
esac
RESULTS=$(mktemp)
export RESULTS
trap 'rm -f "$RESULTS"' EXIT
printf '%s\n' "$scripts" | sed 's|.*/||; s|\.sh$||' | xargs -P "${JOBS:-$(nproc)}" -n 1 tests/cli/run.sh --one
awk '{ printf "%d %s.sh (%d s of CPU)\n", $2, $4, $3 }' "$RESULTS" >"${TOOK:-$RESULTS.took}"
[ -n "${TOOK-}" ] || { tests/took.sh "$RESULTS.took"; rm -f "$RESULTS.took"; }
count() { grep -c "^$1 " "$RESULTS"; }
echo "cli: $(count passed) passed, $(count failed) failed, $(count skipped) skipped"
[ "$(count passed)" -gt 0 ] && [ "$(count failed)" = 0 ]
