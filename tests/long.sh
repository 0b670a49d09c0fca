#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `make check-long`: roots and conversions over all their inputs. Asserted is what IEEE 754 and the instructions' specifications fix,
# so that the same holds on every CPU; times are printed, not judged.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
case $BUILD in /*) NORMBENCH=$BUILD/normbench ;; *) NORMBENCH=$PWD/$BUILD/normbench ;; esac
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
failed=0
sweep() { # ARGUMENTS...
    what=$*
    local start=$SECONDS
    "$NORMBENCH" stress --exhaustive "$@" --format json >"$WORK/out" || { echo "FAIL  stress --exhaustive $* (exit $?)"; failed=1; }
    echo "done  stress --exhaustive $* ($((SECONDS - start)) s)"
}
holds() { # EXPRESSION over the answer `a`, its `rows` and of(field, value), the rows with that value
    /usr/bin/python3 -c "
import json, sys
a = json.load(open('$WORK/out'))
rows = a['rows']
of = lambda field, value: [r for r in rows if r.get(field) == value]
sys.exit(0 if ($1) else 1)" && return
    echo "FAIL  stress --exhaustive $what: not so: $1"
    failed=1
}

sweep roots
holds "a['exhaustive'] and all(r['complete'] for r in rows if 'not_here' not in r)"
holds "of('variant', 'double')[0]['misrounded'] == 0"
holds "all(r['misrounded'] == 4362792 and r['reproducer'] == '0x3f80cab3' and abs(r['max_ulp'] - 1.490) < 5e-4 for v in ('recip_sqrt', 'kernel_mul_recip', 'kernel_div_sqrt') for r in of('variant', v))"
holds "of('variant', 'recip_sqrt_newton')[0]['misrounded'] == 2058644"
holds "[of('variant', v)[0]['misrounded'] for v in ('quake1', 'quake2', 'quake3')] == [16748549, 15241302, 6381215]"
holds "all(r.get('within_limit', True) for r in rows)"
holds "all(sum(r['histogram'].values()) == r['inputs'] and r['histogram'].get('0', 0) + r['misrounded'] == r['inputs'] for r in rows if 'histogram' in r)"

sweep roots --all-inputs --variant double --variant recip_sqrt --variant rsqrtps --variant kernel_mul_recip --variant kernel_rsqrt_nr
holds "all(r['complete'] for r in rows if 'not_here' not in r)"
holds "all(sum(r['inputs'] for r in of('variant', v)) == 2 ** 32 for v in ('double', 'rsqrtps', 'kernel_mul_recip') if 'not_here' not in of('variant', v)[0])"
holds "all(r.get('misrounded', 0) == 0 and r['other_kind'] == 0 for r in of('variant', 'double'))"
holds "all(r['other_kind'] == 0 for r in of('variant', 'recip_sqrt'))"
holds "of('variant', 'recip_sqrt')[0]['misrounded'] == 127 * 4362792"
holds "all(r.get('within_limit', True) for r in rows)"

sweep convert
holds "all(r['complete'] for r in rows if 'not_here' not in r)"
holds "all(r['wrong'] == 0 for r in rows if 'within_limit' in r)"
holds "all(r['wrong'] == r['wrong_subnormal'] for r in rows if 'wrong' in r)"
[ "$failed" = 0 ] && echo "long: passed"
exit "$failed"
