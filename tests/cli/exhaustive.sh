#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# normbench exhaustive: every mode in small, its JSON, its warnings, what it refuses, and Ctrl-C.
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
    "$NORMBENCH" exhaustive "$@" --format json >"$WORK/out" 2>"$WORK/err" || bad "$*: exit $?: $(cat "$WORK/err")"
}

refuses "MODE is missing" exhaustive
refuses "did you mean 'rsqrt'" exhaustive rsqr
refuses "did you mean 'recip_sqrt'" exhaustive rsqrt --variant recip_sqr
refuses "f16, bf16" exhaustive row1 --dtype f32
refuses "a number from 1" exhaustive rsqrt --stride 0
refuses "whole|a number" exhaustive rsqrt --stride x
refuses "--eps" exhaustive row1 --eps 1e-5,,1
refuses "belongs to the modes row1" exhaustive rsqrt --kernel x
refuses "belongs to the mode rsqrt" exhaustive stage --all-inputs
refuses "no f16 kernel" exhaustive row1 --kernel 'nothing*'
refuses "--dtype says f16" exhaustive row2 --design rmsnorm/store:bf16
refuses "too many" exhaustive rsqrt row1

answers rsqrt --variant double --variant recip_sqrt --variant quake3
holds "a['exhaustive'] and [r['misrounded'] for r in rows[:2]] == [0, 4362792]"
holds "rows[1]['witness'] == '0x3f80cab3' and abs(rows[1]['max_ulp'] - 1.490) < 0.0005 and rows[1]['within_limit']"
holds "all(sum(r['histogram'].values()) == r['inputs'] == 16777216 for r in rows)"
holds "rows[0]['special']['0'] == 'inf' and rows[0]['special']['-1'] == 'nan' and rows[0]['special']['inf'] == '0'"
grep -q "about .* s on" "$WORK/err" || bad "no estimate"
grep -q "proves nothing" "$WORK/err" && bad "a warning without a stride"
cp "$WORK/out" "$WORK/threads"
answers rsqrt --variant double --variant recip_sqrt --variant quake3 --threads 1
holds "[{k: v for k, v in r.items() if k != 'seconds'} for r in rows] == [{k: v for k, v in r.items() if k != 'seconds'} for r in json.load(open('$WORK/threads'))['rows']]"

answers rsqrt --all-inputs --stride 1009
holds "not a['exhaustive'] and all('not_here' in r or r['complete'] in (False, r['inputs'] == 1) for r in rows)"
holds "all(r.get('within_limit', True) for r in rows)"
grep -q "proves nothing" "$WORK/err" || bad "no warning with a stride"

answers row1 --kernel 'rmsnorm_twopass_*' --eps 0,1e-6
holds "rows and all(r['undecided'] == 0 and r['source'] == 'kernel' for r in rows)"
holds "all(r['non_finite'] == (2 if r['eps'] == '0' else 0) for r in rows if 'rsqrt' not in r['formula'])"
holds "all(r['max_ulp'] <= 0.5002 for r in rows if 'none' in r['formula'] and 'rsqrt' not in r['formula'])"
answers row1 --design rmsnorm/store:bf16 --dtype bf16 --eps 1e-6
holds "len(rows) == 2 and rows[0]['inputs'] == 65280"

# A plugin's kernels, in a worker.
mistakes=$BUILD/tests/plugins/mistakes.so
answers row1 --plugin "$mistakes" --kernel '*:rms_f16_squares_f16' --kernel '*:rms_f16_correct' --eps 1e-6
holds "{r['source'] for r in rows} == {'kernel'} and all((r['max_ulp'] > 100) == ('squares' in r['formula']) for r in rows) and len(rows) == 8"
answers row2 --plugin "$mistakes" --kernel '*:rms_bf16_truncates' --dtype bf16 --stride 512
holds "rows and all(r['max_ulp'] > 0.9 for r in rows)"
refuses "no kernel of rows in bf16 comes from a plugin" exhaustive row1 --plugin "$BUILD/tests/plugins/example.so" --dtype bf16
refuses "--plugin belongs to the modes row1 and row2" exhaustive stage --plugin "$mistakes"

answers row2 --design rmsnorm/store:f16 --stride 128
holds "rows[0]['n_rows'] == 248 * 248 and not rows[0]['complete'] and rows[0]['max_ulp'] < 0.5002"
answers convert --stride 20011
holds "all(r.get('wrong', 0) == 0 for r in rows if 'vcvtne' not in r['function'])"
holds "{r['format'] for r in rows} == {'f16', 'bf16', 'e5m2', 'e4m3'}"
answers stage
holds "rows[0]['double_rounded'] == 523256 and rows[0]['complete']"
holds "all(r['correct_share'] > 0.9998 for r in rows if r.get('formula', '').startswith('f32, rstd'))"
"$NORMBENCH" exhaustive stage --dtype bf16 --eps 1e-6 2>"$WORK/err" | grep -q "^bf16 .*8096 " || bad "stage as a table"

# Ctrl-C: the exit code of the signal, and what was done until then.
code=0
timeout --foreground --preserve-status -s INT 1 "$NORMBENCH" exhaustive convert --format json >"$WORK/out" 2>"$WORK/err" || code=$?
mode="convert, interrupted"
[ "$code" = 130 ] || bad "interrupted: exit $code"
holds "rows and not rows[0].get('complete') and all(r.get('wrong', 0) == 0 for r in rows if 'vcvtne' not in r['function'])"
grep -q "interrupted" "$WORK/err" || bad "interrupted without a word"
exit "$failed"
