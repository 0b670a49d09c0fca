#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slow, 10 s: compiles C++ six times.
# Functions of other projects, in C and C++, through the gate: the same sources pass untimed by the flags that the guide prints, more work is found by its
# instructions, and what is wrong, breaks or is missing is named. Nothing is said of times but their form.
set -eu
[ "$(uname -m)" = x86_64 ] || { echo "skipped: machine code is compared on x86-64"; exit 77; }
fail() { echo "$*"; cat "$WORK/out" "$WORK/err"; exit 1; }
# CODE PATTERN ARGUMENTS...
gives() {
    local code=$1 pattern=$2 got=0
    shift 2
    "$NORMBENCH" gate --quiet "$@" >"$WORK/out" 2>"$WORK/err" || got=$?
    [ "$got" = "$code" ] || fail "$*: exit $got, wanted $code"
    tr -s ' \n' ' ' <"$WORK/out" | cat - "$WORK/err" | grep -qE -- "$pattern" || fail "$*: no /$pattern/"
}
read -ra compile <<<"$(sed -n 's/^ *compile: //p' cmd/guide/gate.md)"
read -ra link <<<"$(sed -n 's/^ *link: //p' cmd/guide/gate.md)"
only_gxx=$(sed -n 's/^ *g++: *\([^ ]*\) .*/\1/p' cmd/guide/gate.md)
export TMPDIR=$WORK

# ---- C++, by each compiler that is here ----------------------------------------------------------------------------------------------------
words=tests/foreign/words.cpp
untimed=(--case-timeout 600 --budget 0.001) # only the function that hangs is waited for no longer than a moment
tried=0
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || continue
    last=$cxx
    tried=$((tried + 1))
    own=()
    [ $cxx = clang++ ] || own=("$only_gxx")
    build() { # SIDE FLAGS...
        local side=$1
        shift
        "$cxx" -O2 -std=c++17 -Wall -Wextra -Wpedantic -Werror "${compile[@]}" "${own[@]}" "$@" $words "${link[@]}" -o "$WORK/$cxx-$side.so"
    }
    build old
    build same -g
    both=(--baseline "$WORK/$cxx-old.so" --function text::words::count --function sum)
    gives 0 '2 PASS \(identical code\)' "${both[@]}" --candidate "$WORK/$cxx-same.so"
done
[ $tried -gt 0 ] || { echo "skipped: no C++ compiler"; exit 77; }
cxx=$last
build twice -DTWICE
gives 4 'INCONCLUSIVE text::words::count [+][0-9].*PASS .identical code. sum' "${untimed[@]}" "${both[@]}" --candidate "$WORK/$cxx-twice.so"
build throws -DTHROWS
gives 1 'WRONG _ZN4text5words5countEPv: crashed: abort' --baseline "$WORK/$cxx-old.so" --candidate "$WORK/$cxx-throws.so" \
    --function _ZN4text5words5countEPv --setup text::words::count_setup --check text::words::is_right
# Without any of the flags: timed, or refused with what to add.
"$cxx" -O2 -std=c++17 -fPIC -shared $words -o "$WORK/plain.so"
code=0
"$NORMBENCH" gate --baseline "$WORK/plain.so" --candidate "$WORK/plain.so" --function sum >"$WORK/out" 2>"$WORK/err" || code=$?
[ $code = 0 ] || grep -q 'is bound to that of .*build it with -fvisibility=hidden (g++: and -fno-gnu-unique)' "$WORK/err" || fail "plain flags"

# ---- C, without any flags: what is wrong, and what does not come back ---------------------------------------------------------------------
for side in old slow:-DSLOWER=100 bad:-DBAD\ -DWRONG; do
    flags=${side#*:}
    [ "$flags" != "$side" ] || flags=
    "${CC:-cc}" -O2 -Wall -Wextra -fPIC -shared $flags tests/foreign/functions.c -o "$WORK/${side%%:*}.so" 2>/dev/null ||
        gcc -O2 -Wall -Wextra -fPIC -shared $flags tests/foreign/functions.c -o "$WORK/${side%%:*}.so"
done
bad=(--baseline "$WORK/old.so" --candidate "$WORK/bad.so" --case-timeout 600)
gives 1 'WRONG parse: its 24 bytes of output differ from the baseline.s 24, first at byte 0' "${bad[@]}" --function parse
gives 1 'WRONG crashes: crashed: segmentation fault' "${bad[@]}" --function crashes
gives 1 'WRONG hangs: timed_out: no end within the time allowed' "${bad[@]}" --function hangs --case-timeout 2
gives 1 'WRONG leaves: crashed: ended the process by exit code 0' "${bad[@]}" --function leaves
gives 1 'WRONG grows: its 8 bytes of output differ' "${bad[@]}" --function grows
gives 1 'WRONG judged: the check returns 7 after call 1' "${bad[@]}" --function judged
gives 1 'WRONG remembers: candidate while timed: wrong_when_timed' "${bad[@]}" --function remembers
gives 1 'WRONG works_once: a call does not write its output anew: byte [0-7] stays as it was spoilt' "${bad[@]}" --function works_once
gives 1 'WRONG makes_later: no byte of its output can be spoilt between calls, as the baseline.s can' "${bad[@]}" --function makes_later
gives 5 'NOT COMPARABLE grows: call 2 leaves other bytes of output than the first, from byte 0 on \(the baseline\)' \
    --baseline "$WORK/bad.so" --candidate "$WORK/old.so" --function grows
gives 5 'NOT COMPARABLE crashes: crashed: segmentation fault .*\(the baseline\)' --baseline "$WORK/bad.so" --candidate "$WORK/old.so" --function crashes
gives 5 'NOT COMPARABLE sum: the baseline has no such function' --baseline "$WORK/old.so" --candidate "$WORK/$cxx-old.so" --function sum
gives 5 'NOT COMPARABLE apart: the candidate has apart_setup and the baseline has not' "${bad[@]}" --function apart
gives 5 'NOT COMPARABLE apart: the baseline has apart_setup' --baseline "$WORK/bad.so" --candidate "$WORK/old.so" --function apart
gives 5 'NOT COMPARABLE apart: the candidate has apart_setup' "${bad[@]}" --function apart --setup apart_setup
gives 0 '2 PASS \(identical code\)' --baseline "$WORK/old.so" --candidate "$WORK/old.so" --function copy --function list
# What cannot be spoilt is said: notes, which --quiet leaves out.
notes() { # FUNCTION PATTERN
    "$NORMBENCH" gate "${untimed[@]}" --baseline "$WORK/old.so" --candidate "$WORK/slow.so" --function "$1" >"$WORK/out" 2>"$WORK/err" || true
    grep -q "^normbench: $1: that each call does its work is not seen: $2" "$WORK/err" || fail "$1: no note"
}
notes makes 'no byte that makes_bytes gives can be spoilt'
notes stays 'no byte that stays_bytes gives can be spoilt'
notes judged 'without judged_bytes there is nothing to spoil'
# The same code is held to its bytes, unless the whole file is the same.
for side in whole fewer:-DFEWER_BYTES; do
    flags=${side#*:}
    [ "$flags" != "$side" ] || flags=
    gcc -O2 -Wall -Wextra "${compile[@]}" $flags tests/foreign/functions.c "${link[@]}" -o "$WORK/${side%%:*}.so"
done
gives 1 'WRONG copy: its 15999 bytes of output differ from the baseline.s 16000' --baseline "$WORK/whole.so" --candidate "$WORK/fewer.so" --function copy
gives 0 '1 PASS \(identical code\)' --baseline "$WORK/whole.so" --candidate "$WORK/fewer.so" --function list
few=(--case-timeout 600 --screen-launches 7 --confirm-launches 12 --blocks 8)
code=0
"$NORMBENCH" gate --quiet "${few[@]}" --baseline "$WORK/old.so" --candidate "$WORK/slow.so" --function parse --function list --out "$WORK/parse" \
    >"$WORK/out" 2>"$WORK/err" || code=$?
python3 - "$WORK/parse/gate.json" $code <<'PY' || fail "parse, list: exit $code"
import json, sys
cases = json.load(open(sys.argv[1]))["cases"]
assert [c["key"] for c in cases] == ["parse", "list"] and all(c["ratio"]["value"] > 0 for c in cases), cases
codes = [{"REGRESSION": 3, "INCONCLUSIVE": 4, "SUSPECT": 4}.get(c["verdict"], 0) for c in cases]
assert int(sys.argv[2]) == (3 if 3 in codes else max(codes)) and not {c["verdict"] for c in cases} & {"WRONG", "NOT COMPARABLE"}, cases
assert all(c["builds"]["candidate"]["instructions"] > 1.5 * c["builds"]["baseline"]["instructions"] for c in cases if not c["uncounted"]), cases
PY
! command -v python3 >/dev/null || python3 tests/check_schema.py reports/schema "$WORK/parse" || fail "gate.json is not as its schema says"

# ---- mistakes of the command line ---------------------------------------------------------------------------------------------------------
pair=(--baseline "$WORK/old.so" --candidate "$WORK/slow.so")
gives 2 "no function 'prse' \(--function\); did you mean 'parse'\? It has " "${pair[@]}" --function prse
gives 2 "no function 'not_a_function' \(--function\); it has .* and [0-9]+ more" "${pair[@]}" --function not_a_function
gives 2 "no function 'parse_wrong' \(--check\)" "${pair[@]}" --function parse --check parse_wrong
gives 2 'given twice' "${pair[@]}" --function parse --function parse
gives 2 'no --config, --kernel, --filter or --axis' "${pair[@]}" --function parse --kernel x
gives 2 'go with --function NAME' "${pair[@]}" --setup x
gives 2 'is looked for in --baseline' --self-test --function parse
gives 2 '^normbench: error: README.md: cannot be loaded as a shared object: README.md: ' --baseline README.md --candidate "$WORK/old.so" --function parse
gives 2 'README.md is no shared object that can be compared' --baseline README.md --candidate "$WORK/old.so" --function parse

# ---- the self-test counts -------------------------------------------------------------------------------------------------------------------
gives 0 'nothing changed.* more calls, the same machine code' --self-test --baseline "$WORK/old.so" --function empty --trials 1 --powered 1 --effects 50 \
    "${few[@]}"
