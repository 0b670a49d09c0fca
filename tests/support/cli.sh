# SPDX-License-Identifier: Apache-2.0
# What scripts of tests/cli share, which end with `exit "$failed"`.
set -u
failed=0
bad() { echo "$*"; failed=1; }

# normbench ARGUMENTS ends with 2, prints nothing on stdout, and says what PATTERN matches.
refuses() { # PATTERN ARGUMENTS...
    local pattern=$1 code=0
    shift
    "$NORMBENCH" "$@" >"$WORK/out" 2>"$WORK/err" || code=$?
    [ "$code" = 2 ] && [ ! -s "$WORK/out" ] && grep -qE -- "$pattern" "$WORK/err" && return
    bad "normbench $*: exit $code, wanted 2 and /$pattern/; said: $(cat "$WORK/err" "$WORK/out")"
}
