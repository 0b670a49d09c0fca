#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The launches of the kernels for GPUs (kernels/cuda/driver.c) on a driver without a GPU (tests/plugins/mock_cuda.c), which emulates what is
# launched: what comes of parameters, streams and graphs is compared with the oracle; grids, blocks, shared memory and clusters are
# those of the shapes; what the driver refuses is a sentence. And what the build makes of a compiler of CUDA 12.
. tests/support/cli.sh
. tests/support/cuda.sh
mkdir -p "$WORK/lib" "$WORK/driver"
emulated=$BUILD/tests/few built=$BUILD/tests/few
[ -z "${ALL-}" ] || emulated=$BUILD built=$BUILD/tests/mock
built_in "$emulated" "$emulated/tests/mock_launcher.so" && built_in "$built" DTYPES=f32 NVCC=tests/cuda/mock_nvcc.sh cuda || exit 1
cp "$BUILD/tests/plugins/mock_cuda.so" "$WORK/driver/libcuda.so.1"
cp "$emulated/tests/mock_launcher.so" "$WORK/driver"
cp "$built/libnormkernels_cuda.so" "$WORK/lib"
ln -s "$(realpath "${NORMBENCH_KERNELS:-$BUILD/libnormkernels.so}")" "$WORK/lib/libnormkernels.so"
export NORMBENCH_KERNELS=$WORK/lib/libnormkernels.so
mock() { # WHAT-GOES-WRONG ARGUMENTS...
    local wrong=$1
    shift
    rm -f "$WORK/launches"
    LD_LIBRARY_PATH=$WORK/driver NORMBENCH_TEST_CUDA=$wrong NORMBENCH_TEST_CUDA_LAUNCHES=$WORK/launches "$NORMBENCH" "$@" >"$WORK/out" 2>"$WORK/err"
}
launched() { # LAUNCH, as the mock writes them
    grep -qx "$1" "$WORK/launches" || bad "no launch $1, but: $(grep "^${1%% *} " "$WORK/launches" | sort -u | head -n 5)"
}

# ---- every kind of launch ------------------------------------------------------------------------------------------------------------
ops='"rmsnorm", "layernorm"' more=
[ -z "${ALL-}" ] || ops+=', "add_rmsnorm", "prmsnorm"'
[ -z "${ALL-}" ] || more=', { "backend": "cuda", "op": "batchnorm", "pass": ["forward", "backward"], "shape": ["nchw:2x5x6x6", "nchw:3x2x54x54", "nhwc:3x5x5x7"] }'
cat >"$WORK/c.json" <<JSON
{ "launches": 0, "blocks": [
  { "backend": "cuda", "op": [$ops], "pass": ["forward", "backward"], "shape": ["3x7", "5x1000"] },
  { "backend": "cuda", "kernel": "rmsnorm_row", "shape": ["70x40", "2x9001", "7x9004", "1x70000"] }$more ] }
JSON
mock "" run "$WORK/c.json" --case-timeout 300 --no-stress --no-plots --out "$WORK/right" || bad "exit $?; $(tail -n 5 "$WORK/out" "$WORK/err")"
# Seven columns; four rows a thread; two blocks that share one; eight, with 64 elements a thread.
launched "rows_f32_narrow_32 grid 1 block 128 cluster 1 shared 256"
launched "kept_f32_wide_rms_f32_short grid 2 block 128 cluster 1 shared 256"
launched "rows_f32_narrow_32 grid 4 block 256 cluster 2 shared 256"
launched "kept_f32_wide_rms_f32_cluster_64 grid 8 block 256 cluster 8 shared 256"
# Seven rows over the three blocks that run at once: three, three and one; three more are on their way in shared memory.
launched "kept_f32_wide_rms_f32_pair grid 3 block 512 cluster 1 shared 196864"
launched "columns_add grid 1 block 256 cluster 1 shared 1024"
[ -z "${ALL-}" ] || launched "batchnorm_f32_wide_train grid 16 block 256 cluster 8 shared 256"
# Compiled from the PTX of sm_80 when it was loaded: no clusters, and a row that takes more memory than a block has unasked.
mock ptx run "$WORK/c.json" --axis kernel=rmsnorm_row --axis shape=1x14000 --axis pass=forward --case-timeout 300 --no-stress --no-plots --out "$WORK/alone" ||
    bad "ptx: exit $?; $(tail -n 5 "$WORK/out" "$WORK/err")"
launched "rows_f32_wide_long grid 1 block 256 cluster 1 shared 57600"

# ---- what the driver refuses ---------------------------------------------------------------------------------------------------------
cat >"$WORK/one.json" <<'JSON'
{ "launches": 0, "blocks": [ { "backend": "cuda", "kernel": ["rmsnorm_row", "rmsnorm_composed"], "op": "rmsnorm", "shape": "3x7" } ] }
JSON
said() { # WHAT-GOES-WRONG SENTENCE
    mock "$1" run "$WORK/one.json" --no-stress --no-plots --out "$WORK/$1"
    [ $? = 1 ] && grep -qE "$2" "$WORK/err" || bad "$1: not said: $2; $(tail -n 5 "$WORK/out" "$WORK/err")"
}
said no_context "cuda: no context is current to launch \w+$"
said no_image "cuda: the driver does not load the module of \w+: CUDA_ERROR_NO_BINARY_FOR_GPU"
said no_function "cuda: the driver does not find the function \w+: CUDA_ERROR_NOT_FOUND"
said no_launch "cuda: the driver does not launch \w+: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
# Every kernel asks for the driver of its compiler, composed ones too.
mock old_12 run "$WORK/one.json" --no-stress --no-plots --out "$WORK/old"
[ $? = 77 ] || bad "a driver of CUDA 12: exit not 77; $(tail -n 5 "$WORK/out" "$WORK/err")"
grep -qs "too old for these kernels: it serves CUDA 12.4, and they were compiled for 13.0 (driver 580 or later)" "$WORK/out" "$WORK/err" ||
    bad "a driver of CUDA 12: $(tail -n 5 "$WORK/out" "$WORK/err")"
[ ! -s "$WORK/launches" ] || bad "kernels that are not applicable were launched"

# ---- a compiler of CUDA 12 -----------------------------------------------------------------------------------------------------------
MOCK_NVCC=12.4 MOCK_NVCC_LOG=$WORK/nvcc make -s BUILD="$WORK/b" NVCC=tests/cuda/mock_nvcc.sh "$WORK/b/cuda/apply.fatbin" "$WORK/b/cuda/driver.o" ||
    bad "CUDA 12.4 is not taken"
grep -q 'arch=compute_90,code=sm_90 -gencode arch=compute_80,code=compute_80' "$WORK/nvcc" && ! grep -q sm_100 "$WORK/nvcc" || bad "CUDA 12.4 compiles for $(cat "$WORK/nvcc")"
# shellcheck disable=SC2046 # a word for each object
gcc -shared -Wl,-Bsymbolic -o "$WORK/lib/libnormkernels_cuda.so" "$WORK/b/cuda/driver.o" "$built/cuda/modules.o" "$built/cuda/table.o" \
    $(sed "s|.*(\(.*\)_cuda_\(.*\))|$built/cuda/\1_\2.o|" "$built/cuda/kernel_list.h") -ldl -lpthread
mock old_12 run "$WORK/one.json" --no-stress --no-plots --out "$WORK/of_12" || bad "what CUDA 12.4 compiled does not run on its driver: $(tail -n 5 "$WORK/out" "$WORK/err")"
mock old run "$WORK/one.json" --no-stress --no-plots --out "$WORK/older"
[ $? = 77 ] || bad "a driver of CUDA 11: exit not 77"
exit "$failed"
