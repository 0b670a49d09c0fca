#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The run on a GPU (tests/cuda/gpu.sh), rehearsed without one, from the folder that is carried there: first every step says that there is no device;
# then on a driver that is a mock, which runs our kernels in emulation, so that every step does its work.
# Long, 130 s: the host part of every kernel is compiled for GPUs, and the kernels run thread by thread.
. tests/support/cli.sh
[ "$(uname -m)" = x86_64 ] || { echo "the folder is made on x86_64"; exit 77; }
mock=$BUILD/tests/mock ALL=1
. tests/support/cuda.sh
built_in "$BUILD" cuda-emulated "$BUILD/tests/mock_launcher.so" && built_in "$mock" DTYPES=f32 NVCC=tests/cuda/mock_nvcc.sh cuda || exit 1
bundle=$WORK/bundle
built_in "$BUILD" BUNDLE="$bundle" CUDA_LIBRARY="$mock/libnormkernels_cuda.so" TEST_KERNELS="$NORMBENCH_KERNELS" cuda-bundle || exit 1

# ---- the folder ---------------------------------------------------------------------------------------------------------------------
[ "$(du -sk "$bundle" | cut -f 1)" -lt 40000 ] || bad "the folder has $(du -sh "$bundle" | cut -f 1)"
elsewhere=$(ldd "$bundle/normbench" | grep '=>' | grep -vE "=> $bundle/lib/|lib(c|m|dl|pthread|rt)\.so")
[ -z "$elsewhere" ] || bad "libraries from elsewhere: $elsewhere"
unset NORMBENCH NORMBENCH_KERNELS NORMBENCH_CONFIGS NORMBENCH_DATA
"$bundle/normbench" run quick --list >/dev/null 2>"$WORK/err" || bad "its program does not find what it needs: $(cat "$WORK/err")"

rehearse() { # EXIT OUT WHAT-GOES-WRONG
    local code=0
    PATH=$WORK/bin:$PATH LD_LIBRARY_PATH=${driver-} NORMBENCH_TEST_CUDA=$3 "$bundle/gpu.sh" "$WORK/$2" >"$WORK/$2.said" 2>&1 || code=$?
    [ "$code" = "$1" ] || bad "$2: exit $code, wanted $1; $(tail -n 40 "$WORK/$2.said")"
    [ "$(find "$WORK/$2" -type f | wc -l)" -le 8 ] || bad "$2: more than 8 files: $(ls "$WORK/$2")"
    [ "$(find "$WORK/$2" -mindepth 1 ! -type f | wc -l)" = 0 ] || bad "$2: not files alone: $(ls -l "$WORK/$2")"
}
says() { # OUT PATTERN..
    local out=$1 pattern
    shift
    for pattern; do grep -qE -- "$pattern" "$WORK/$out/summary.txt" || bad "$out: the table does not say /$pattern/: $(cat "$WORK/$out/summary.txt")"; done
}
mkdir "$WORK/bin" "$WORK/driver"
cp "$BUILD/tests/plugins/mock_cuda.so" "$WORK/driver/libcuda.so.1"
cp "$BUILD/tests/plugins/mock_cuda.so" "$WORK/driver/libnvidia-ml.so.1"
cp "$BUILD/tests/mock_launcher.so" "$WORK/driver/"

python3 "$bundle/peers.py" --try "$bundle/libnormkernels_cuda_emulated.so" >"$WORK/out" || bad "calls by ctypes: $(cat "$WORK/out")"

# ---- without a device -------------------------------------------------------------------------------------------------------------
export GPU_TIME="--axis dtype=f32" # as was built
for driver in "" "$WORK/driver"; do
    [ -z "$driver" ] && ldconfig -p | grep -q 'libcuda\.so\.1' && continue
    rehearse 77 none no_device
    says none "^GPU: no device"
    for step in device checks digests memcheck racecheck timings peers; do says none "^ *$step .* no device$"; done
done

# ---- with one that is a mock ----------------------------------------------------------------------------------------------------------
cat >"$WORK/bin/compute-sanitizer" <<'SH'
#!/bin/bash
while [ "${1#--}" != "$1" ]; do [ "$1" = --tool ] || [ "$1" = --error-exitcode ] || exit 2; shift 2; done
(export NORMBENCH_TEST_SANITIZED=$BASHPID && exec "$@") || exit
echo "========= ERROR SUMMARY: 0 errors"
SH
chmod +x "$WORK/bin/compute-sanitizer"
export GPU_CHECK="--axis dtype=f32 --axis shape=3x7,5x1000,nchw:2x5x6x6 --axis root=mul_recip,rsqrt_raw --axis cast=after --axis eps_place=inside"
export GPU_TIME="--axis dtype=f32 --axis shape=64x256 --launches 1 --blocks 2"
GPU_LIMIT=4800 rehearse 0 mock "" # on a machine however slow
says mock '^GPU: Mock "GPU", driver 580.65.06' '^  rmsnorm_row +[0-9]+ ok$' '^  batchnorm_backward_channels +[0-9]+ ok$' '^  layernorm_row_cuda_f32 +64x256 +[0-9.]+ ' \
    '^ *peers .* (ok|not run: .*)$'
for step in device checks digests memcheck racecheck timings; do says mock "^ *$step .* ok$"; done
grep -q '^[1-9][0-9]* same, 0 different' "$WORK/mock.said" || bad "no outputs were compared with the emulation's: $(cat "$WORK/mock.said")"
# Another bit is found.
sed 's/,same$/&/; 0,/^\(cuda:[^,]*\),\([0-9a-f]\{15\}\)./s//\1,\2x/' "$WORK/mock/digests.csv" >"$WORK/changed"
awk -F, -v OFS=, 'BEGIN { print "key,digest" } FNR > 1 { print $1, $2 }' "$WORK/changed" >"$WORK/gpu.csv"
awk -F, -v OFS=, 'BEGIN { print "key,digest" } FNR > 1 { print $1, $3 }' "$WORK/changed" >"$WORK/emulated.csv"
[ "$(awk -v mode=digests -f tests/cuda/gpu.awk "$WORK/emulated.csv" "$WORK/gpu.csv" 2>/dev/null | grep -c ',different$')" = 1 ] || bad "another digest is not found"
# What there is no time for is said, and fails nothing.
GPU_LIMIT=0 rehearse 0 late ""
for step in checks memcheck timings; do says late "^ *$step .* cut off after 0 s"; done
# A device that fails every call.
export GPU_CHECK="--axis kernel=rmsnorm_row --axis dtype=f32 --axis shape=3x7" GPU_TIME="--axis dtype=f32 --axis shape=64x256 --axis kernel=rmsnorm_row --launches 1 --blocks 2"
rehearse 1 misaligned misaligned
says misaligned "^ *checks .* FAILED"
exit "$failed"
