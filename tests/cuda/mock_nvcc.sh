#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A compiler for GPUs that writes no code, for a driver that runs none (tests/plugins/mock_cuda.c): NVCC=tests/cuda/mock_nvcc.sh. MOCK_NVCC: its release
# (13.0); MOCK_NVCC_LOG: where it writes what it is asked to compile.
release=${MOCK_NVCC:-13.0}
case $1 in
--version) echo "Cuda compilation tools, release $release, V$release.1" ;;
--list-gpu-code)
    printf 'sm_%s\n' 80 86 90
    [ "${release%%.*}" -lt 13 ] || echo sm_100
    ;;
*)
    echo "$*" >>"${MOCK_NVCC_LOG:-/dev/null}"
    while [ "$1" != -o ]; do shift; done
    : >"$2"
    ;;
esac
