# SPDX-License-Identifier: Apache-2.0
# Where scripts about the kernels for GPUs build: in f32 some kernels of rows and what they launch, within seconds; with ALL=1 all, in $BUILD, and beside it
# ($BUILD/tests/mock) what a compiler that writes no code makes.
few=(KERNELS="rmsnorm_row layernorm_row rmsnorm_backward_row batchnorm_channels copy copy_null" CUDA_FUNCTIONS="kept rows gradient columns copies batchnorm apply" DTYPES=f32 OPT=-O0 EMULATED=-DF32_ALONE)
[ -z "${ALL-}" ] || few=()
built_in() { # FOLDER TARGET..
    mkdir -p "$1"
    flock "$1" make -s BUILD="$1" "${few[@]}" "${@:2}"
}
