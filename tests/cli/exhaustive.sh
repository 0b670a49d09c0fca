#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# normbench stress --exhaustive: roots and conversions in small, the JSON, the warnings, what it refuses, and Ctrl-C.
. tests/support/cli.sh
# A Python expression over the answer `a` and its rows `rows`.
holds() { # EXPRESSION
    /usr/bin/python3 -c "
import json, sys
a = json.load(open('$WORK/out'))
rows = a['rows']
sys.exit(0 if ($1) else 1)" || bad "$mode: not so: $1"
}
answers() { # ARGUMENTS...
    mode=$*
    "$NORMBENCH" stress --exhaustive "$@" --format json >"$WORK/out" 2>"$WORK/err" || bad "$*: exit $?: $(cat "$WORK/err")"
}

refuses "one of roots, convert" stress --exhaustive rows
refuses "did you mean 'recip_sqrt'" stress --exhaustive roots --variant recip_sqr
refuses "a number from 1" stress --exhaustive roots --stride 0
refuses "belong to --exhaustive" stress --stride 7
refuses "--all-inputs belongs to --exhaustive roots" stress --exhaustive convert --all-inputs
for other in "--kernel x" "--search 2" "--out $WORK/x" quick; do
    # shellcheck disable=SC2086
    refuses "takes --variant, --all-inputs, --stride and --format alone" stress --exhaustive roots $other
done

answers roots --variant double --variant recip_sqrt --variant quake3
holds "a['exhaustive'] and [r['misrounded'] for r in rows[:2]] == [0, 4362792]"
holds "rows[1]['reproducer'] == '0x3f80cab3' and abs(rows[1]['max_ulp'] - 1.490) < 0.0005 and rows[1]['within_limit']"
holds "all(sum(r['histogram'].values()) == r['inputs'] == 16777216 for r in rows)"
holds "rows[0]['special']['0'] == 'inf' and rows[0]['special']['-1'] == 'nan' and rows[0]['special']['inf'] == '0'"
grep -q "proves nothing" "$WORK/err" && bad "a warning without a stride"

# The limit of an instruction in f16 that few CPUs have nearly reaches what rounding alone costs.
answers roots --variant rsqrtph
holds "'not_here' in rows[0] or rows[0]['within_limit'] and rows[0]['max_relative'] > 0.5 * rows[0]['relative_limit']"

answers roots --all-inputs --stride 50021
holds "not a['exhaustive'] and all('not_here' in r or r['complete'] in (False, r['inputs'] == 1) for r in rows)"
holds "all(r.get('within_limit', True) for r in rows)"
grep -q "proves nothing" "$WORK/err" || bad "no warning with a stride"
"$NORMBENCH" stress --exhaustive roots --variant quake1 --stride 999 2>"$WORK/err" | grep -q "^quake1 " || bad "no table"

answers convert --stride 200003
holds "all(r.get('wrong', 0) == 0 for r in rows if 'vcvtne' not in r['function'])"
holds "{r['format'] for r in rows} == {'f16', 'bf16', 'e5m2', 'e4m3'}"

# Ctrl-C: the exit code of the signal, and what was done until then.
code=0
echo "interrupt chunk 2" >"$WORK/played"
NORMBENCH_PLAYED=$WORK/played "$NORMBENCH" stress --exhaustive convert --format json >"$WORK/out" 2>"$WORK/err" || code=$?
mode="convert, interrupted"
[ "$code" = 130 ] || bad "interrupted: exit $code"
holds "rows and not rows[0].get('complete') and all(r.get('wrong', 0) == 0 for r in rows if 'vcvtne' not in r['function'])"
grep -q "interrupted" "$WORK/err" || bad "interrupted without a word"
exit "$failed"
