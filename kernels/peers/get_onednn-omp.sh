#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# get_onednn-omp.sh FOLDER: compiles oneDNN 3.13.1 for GNU OpenMP, norms and reorders alone: FOLDER/{include,lib}.
# 14 MB to download and 54 minutes of CPU time (a Zen 3). ONEDNN_SOURCE=DIR: from these sources in place of the download, any 3.x.
set -eu
version=3.13.1
# Of the archive that GitHub makes of the tag: git archive --prefix=oneDNN-$version/ v$version | gzip -n.
sha256=911275081f9cc3406cb3e7754a0f7a8200adcbff09439d6cde0a1e543f343c5b
file=oneDNN-$version.tar.gz
url=https://github.com/uxlfoundation/oneDNN/archive/refs/tags/v$version.tar.gz
fail() { echo "  onednn-omp: $*" >&2; exit 1; }

target=$1
work=$target.build
source=${ONEDNN_SOURCE:-}
mkdir -p "$work"
for tool in cmake make g++ python3; do
  command -v $tool >/dev/null || fail "needs $tool: apt-get install cmake make g++ python3"
done
if [ -z "$source" ]; then
  source=$work/source
  if [ ! -f "$source/CMakeLists.txt" ]; then
    python3 "$(dirname "$0")/download.py" "$work/$file" $sha256 $url ||
      fail "the sources of oneDNN $version cannot be had; ONEDNN_SOURCE=DIR takes what you have (git clone -b v$version https://github.com/uxlfoundation/oneDNN), PEERS=onednn-3.2 is of 2023, from PyPI"
    rm -rf "$source.new"
    mkdir "$source.new"
    tar xf "$work/$file" -C "$source.new" --strip-components=1
    mv "$source.new" "$source"
  fi
fi
[ -f "$source/include/oneapi/dnnl/dnnl.h" ] || fail "$source holds no sources of oneDNN 3.x"
# Debian's copy leaves out the sources of spdlog, and Debian's spdlog those of fmt.
flags=
if [ ! -d "$source/third_party/spdlog" ]; then
  [ -f /usr/include/spdlog/spdlog.h ] || fail "needs spdlog: apt-get install libspdlog-dev"
  flags="-DSPDLOG_FMT_EXTERNAL -DFMT_HEADER_ONLY"
fi
[ -z "${ONEDNN_SOURCE:-}" ] || rm -rf "$work/objects" # perhaps of other sources
cmake -S "$source" -B "$work/objects" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$target.new" -DCMAKE_INSTALL_LIBDIR=lib \
  -DCMAKE_CXX_FLAGS="$flags" -DONEDNN_CPU_RUNTIME=OMP -DONEDNN_GPU_RUNTIME=NONE \
  -DONEDNN_ENABLE_PRIMITIVE="LAYER_NORMALIZATION;BATCH_NORMALIZATION;REORDER" -DONEDNN_ENABLE_GEMM_KERNELS_ISA=NONE \
  -DONEDNN_BUILD_GRAPH=OFF -DONEDNN_BUILD_TESTS=OFF -DONEDNN_BUILD_EXAMPLES=OFF \
  -DONEDNN_ENABLE_ITT_TASKS=OFF -DONEDNN_ENABLE_JIT_PROFILING=OFF >"$work.log" 2>&1 || { tail -n 20 "$work.log" >&2; fail "cmake"; }
echo "  onednn-omp: compiles; progress in $work.log"
make -C "$work/objects" -j"$(nproc)" install >>"$work.log" 2>&1 || { tail -n 20 "$work.log" >&2; fail "the sources do not compile ($work.log)"; }
[ -f "$target.new/lib/libdnnl.so.3" ] || fail "$target.new/lib has no libdnnl.so.3 ($work.log)"
rm -rf "$work" "$work.log"
