#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# get.sh FOLDER: downloads the wheels of wheels.txt from PyPI, each held to its SHA-256, and unpacks NVIDIA's compiler into FOLDER/{bin,include,nvvm,..}.
# What is there is not fetched again; nothing is installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
if cmp -s "$here/wheels.txt" "$folder/complete"; then
  echo "  cuda: is in $folder"
  exit
fi
[ "$(uname -m)" = x86_64 ] || { echo "make cuda-compiler: the wheels are for x86_64; elsewhere set CUDA_HOME" >&2; exit 1; }
python3 -m pip --version >/dev/null 2>&1 || { echo "make cuda-compiler: needs pip: apt-get install python3-pip" >&2; exit 1; }
rm -rf "$folder.new"
mkdir -p "$folder.new/wheels"
python3 -m pip download --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: --implementation py \
  --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 -d "$folder.new/wheels" -r "$here/wheels.txt"
for wheel in "$folder.new"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$folder.new/wheels"; done
mv "$folder.new"/wheels/nvidia/cu13/* "$folder.new/"
rm -rf "$folder.new/wheels"
chmod +x "$folder.new"/bin/* "$folder.new"/nvvm/bin/*
cp "$here/wheels.txt" "$folder.new/complete"
rm -rf "$folder"
mv "$folder.new" "$folder"
du -sh "$folder" | sed 's/^/  /'
