#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The library for GPUs, where there is a compiler: it needs nothing of CUDA to be loaded, and has its kernels there.
# Long, 200 s: every device function is compiled for three GPUs.
. tests/support/cli.sh
[ -n "${CUDA_HOME-}" ] || command -v nvcc >/dev/null || [ -x peers/cuda/bin/nvcc ] || { echo "no nvcc: make cuda-compiler gets one"; exit 77; }
make -s BUILD="$BUILD" cuda || exit 1
library=$BUILD/libnormkernels_cuda.so
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libdl|libpthread|ld-linux-x86-64)\.so')
[ -z "$needed" ] || bad "needs $needed"
/usr/bin/python3 - "$PWD/$library" <<'PY' || bad "is not loaded where there is no CUDA"
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
n = ctypes.c_size_t()
library.normbench_kernels.restype = ctypes.c_void_p
assert library.normbench_kernels(1, ctypes.byref(n)) and n.value > 60, n.value
PY
CODE=all bash tests/cli/cuda_code.sh || [ $? = 77 ] || failed=1
exit "$failed"
