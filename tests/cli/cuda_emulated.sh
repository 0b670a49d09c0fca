#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kernels for GPUs (kernels/cuda/), emulated on the CPU: against the oracle, with the relations between calls and guards around their
# tensors, in three orders of the threads, with clusters and without, with much shared memory and with little; mistakes that are planted in
# them are found. Of all kernels with ALL=1 (cuda_emulated_all.sh), else of one a family.
. tests/support/cli.sh
. tests/support/cuda.sh
built=$BUILD/tests/few
[ -z "${ALL-}" ] || built=$BUILD
built_in "$built" cuda-emulated || exit 1
library=$built/libnormkernels_cuda_emulated.so

# ---- every kernel is right ------------------------------------------------------------------------------------------------------
# Other orders and devices take the same ways with fewer formulas and dtypes.
mistakes="NO_BARRIER NO_WAIT" everything=$WORK/few.json
cat >"$WORK/few.json" <<'JSON'
{ "launches": 0, "blocks": [
  { "backend": "cuda-emulated", "op": ["rmsnorm", "layernorm"], "pass": ["forward", "backward"], "shape": ["3x7", "2x1000"] },
  { "backend": "cuda-emulated", "kernel": "rmsnorm_row", "shape": "1x9001" },
  { "backend": "cuda-emulated", "op": "batchnorm", "shape": ["nchw:2x5x6x6", "nhwc:3x5x5x7"] } ] }
JSON
if [ -n "${ALL-}" ]; then
    mistakes="NO_BARRIER SHORT_SHUFFLE BRANCHED_BARRIER WIDE_MASK FAR_VECTOR UNWRITTEN_SHARED NO_WAIT" everything=tests/cuda/check.json
    cat >"$WORK/few.json" <<'JSON'
{ "launches": 0, "blocks": [
  { "backend": "cuda-emulated", "op": ["rmsnorm", "layernorm", "add_rmsnorm", "prmsnorm"], "pass": ["forward", "backward"], "shape": ["3x7", "5x1000"] },
  { "backend": "cuda-emulated", "kernel": "*_row", "pass": ["forward", "backward"], "dtype": "bf16", "shape": "2x9001" },
  { "backend": "cuda-emulated", "kernel": "rmsnorm_row", "shape": "1x12000" },
  { "backend": "cuda-emulated", "op": "batchnorm", "pass": ["forward", "backward"], "shape": ["nchw:2x5x6x6", "nhwc:3x5x5x7"] } ] }
JSON
    # A budget knows how long it takes to emulate; a quarter of it is kept for the rows of `stress`.
    "$NORMBENCH" run quick --axis backend=cuda-emulated --axis kernel='*' --plugin "$library" --list >"$WORK/listed" 2>&1
    grep -q "over the budget of 60 s (15 s of it kept" "$WORK/listed" || bad "quick, emulated, is all within its budget: $(tail -n 5 "$WORK/listed")"
    # Copies move every bit, by the test of the CPU's.
    NORMBENCH_KERNELS=$library "$BUILD/tests/normbench-tests" --filter 'kernels/copies_move*' >"$WORK/copies" 2>&1 || bad "copies: $(tail -n 20 "$WORK/copies")"
fi
checked() { # NAME CONFIG SETTINGS
    local code=0
    NORMBENCH_EMULATED=$3 "$NORMBENCH" run "$2" --axis backend=cuda-emulated --plugin "$library" --case-timeout 300 --no-stress --no-plots --out "$WORK/$1" >"$WORK/$1.out" 2>&1 || code=$?
    [ "$code" = 0 ] || bad "$1 ($3): exit $code; $(grep -A 2 -m 3 -E '^(crashed|inaccurate|biased|not_reproducible|returned|wrote|read)' "$WORK/$1.out" || tail -n 5 "$WORK/$1.out")"
}
checked first "$everything" "seed=1"
checked second "$WORK/few.json" "seed=2 clusters=0"
checked third "$WORK/few.json" "seed=3 clusters=0 shared=49152"
# Rows that lie one element apart are not aligned, and so for the generic functions: the fast ones have their bits.
cat >"$WORK/bits.json" <<JSON
{ "launches": 0, "blocks": [ { "backend": "cuda-emulated", "kernel": ["rmsnorm*_row", "layernorm*_row"${ALL:+, \"add_rmsnorm*_row\"}], "pass": ["forward", "backward"],
  "dtype": ["f32"${ALL:+, \"f16\", \"bf16\"}], "shape": ["5x256", "3x1000", "2x9000"${ALL:+, \"9x512\", \"2x2048\", \"1x70000\"}], "stride": ["packed", "1"] } ] }
JSON
checked bits "$WORK/bits.json" "seed=4"
/usr/bin/python3 - "$WORK/bits/results.json" <<'PY' || bad "the fast functions have other bits than the generic ones"
import json, re, sys
digests = {}
for r in json.load(open(sys.argv[1]))["records"]:
    digests.setdefault(re.sub("/stride:[^/]*", "", r["key"]), []).append(r["digest"])
print(*(key for key, d in digests.items() if len(d) != 2 or d[0] != d[1]), sep="\n")
sys.exit(len(digests) < 9 or any(len(d) != 2 or d[0] != d[1] for d in digests.values()))
PY
/usr/bin/python3 - "$WORK/first/results.json" "$built/cuda_emulated/kernel_list.h" <<'PY' || failed=1
import json, re, sys
records = json.load(open(sys.argv[1]))["records"]
seen = {r["key"].split("/")[0].split(":")[-1] for r in records}
built = {v for v in re.findall(r"\((\w+)\)", open(sys.argv[2]).read()) if not v.startswith("copy")}
if built - seen:
    print("not checked:", *sorted(built - seen)[:9])
sys.exit(bool(built - seen))
PY

# A plugin called as the library is stands in for it, and so is loaded beside none.
mkdir "$WORK/other"
cp "$library" "$WORK/other/libnormkernels_cuda_emulated.so"
"$NORMBENCH" run "$WORK/few.json" --plugin "$WORK/other/libnormkernels_cuda_emulated.so" --axis shape=3x7 --axis op=rmsnorm --filter '*rmsnorm_row*' --no-stress --no-plots \
    --out "$WORK/stands_in" >"$WORK/stands_in.out" 2>&1 || bad "a plugin called cuda_emulated: exit $?; $(tail -n 5 "$WORK/stands_in.out")"

# ---- planted mistakes are found, in some order of the threads -----------------------------------------------------------------------
planted() { # MISTAKE ROOT [KERNEL PASS], by which kept.cu or rows.cu has the kernel, or gradient.cu
    local mistaken=$built/tests/planted/$1.so
    built_in "$built" "$mistaken" || { bad "$1 is not built"; return; }
    cat >"$WORK/$1.json" <<JSON
{ "launches": 0, "blocks": [ { "backend": "cuda-emulated", "kernel": "$1:${3:-layernorm_row}", "pass": "${4:-forward}", "dtype": "f32", "root": "$2", "shape": ["3x40", "3x3000"] } ] }
JSON
    for seed in 1 2 3; do
        NORMBENCH_EMULATED="seed=$seed" "$NORMBENCH" run "$WORK/$1.json" --plugin "$mistaken" --case-timeout 300 --no-stress --no-plots \
            --out "$WORK/$1-$seed" >"$WORK/$1-$seed.out" 2>&1
        [ $? != 1 ] || return 0
    done
    bad "$1 with $2 is not found"
}
for mistake in $mistakes; do
    [ "$mistake" != NO_WAIT ] || { planted "$mistake" mul_recip rmsnorm_backward_row backward; continue; }
    [ "$mistake" = WIDE_MASK ] || planted "$mistake" mul_recip
    planted "$mistake" div_sqrt
done
exit "$failed"
