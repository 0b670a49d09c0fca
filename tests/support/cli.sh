# SPDX-License-Identifier: Apache-2.0
# What scripts of tests/cli share, which end with `exit "$failed"`.
set -u
failed=0
bad() { echo "$*"; failed=1; }

# COMMAND ends with CODE and says on stderr what PATTERN matches.
ends() { # CODE PATTERN COMMAND...
    local wanted=$1 pattern=$2 code=0
    shift 2
    "$@" >"$WORK/out" 2>"$WORK/err" || code=$?
    [ "$code" = "$wanted" ] && { [ -z "$pattern" ] || grep -qE -- "$pattern" "$WORK/err"; } && return
    bad "$*: exit $code, wanted $wanted and /$pattern/; said: $(cat "$WORK/err" "$WORK/out")"
}

refuses() { # PATTERN ARGUMENTS...: of normbench, which prints nothing on stdout
    ends 2 "$1" "$NORMBENCH" "${@:2}"
    [ ! -s "$WORK/out" ] || bad "normbench ${*:2}: prints $(cat "$WORK/out")"
}
waits() { # CODE WHAT: what the process $pid ends with
    local code=0
    wait "$pid" || code=$?
    [ "$code" = "$1" ] || bad "$2: exit $code, wanted $1; said: $(cat "$WORK/err" "$WORK/out" 2>/dev/null)"
}

# A journal as of another machine: in its run lines the first member of each name gets that value, and the lines the sums of what they say now.
pretend() { # JOURNAL MEMBER=VALUE...
    PYTHONPATH=tests/support /usr/bin/python3 - "$@" <<'PY'
import re, sums, sys
lines = open(sys.argv[1], "rb").read().split(b"\n")
for i, line in enumerate(lines):
    if not line.startswith(b'{"type":"run"'): continue
    text = line[:line.rindex(b',"sum":"')]
    for change in sys.argv[2:]:
        name, value = change.encode().split(b"=")
        text, n = re.subn(b'("' + name + b'":)[^,}]*', lambda found: found[1] + value, text, count=1)
        assert n == 1, name
    lines[i] = text + b',"sum":"' + sums.fnv(text).encode() + b'"}'
open(sys.argv[1], "wb").write(b"\n".join(lines))
PY
}

# until_lines PID FILE N: waits until FILE has N lines, or the process has ended; no limit but the script's own.
until_lines() { while kill -0 "$1" 2>/dev/null && [ "$(cat "$2" 2>/dev/null | wc -l)" -lt "$3" ]; do sleep 0.02; done; }
