#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# get.sh FOLDER PEER..: downloads the wheels that wheels/PEER.txt lists from PyPI, each held to its SHA-256, into FOLDER/wheels/, and
# unpacks headers and libraries into FOLDER/PEER/{include,lib}. What is there is not fetched again; nothing is installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
shift
known=$(cd "$here/wheels" && ls -- *.txt | sed 's/\.txt$//' | tr '\n' ' ')
platforms="--platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_25_x86_64 \
  --platform manylinux2014_x86_64 --platform manylinux1_x86_64 --platform any"
[ "$(uname -m)" = x86_64 ] || { echo "make peers: the wheels are for x86_64; elsewhere build the library and give it with --peer-lib" >&2; exit 1; }
python3 -m pip --version >/dev/null 2>&1 || { echo "make peers: needs pip: apt-get install python3-pip" >&2; exit 1; }

for peer; do
  list=$here/wheels/$peer.txt
  [ -f "$list" ] || { echo "make peers: no peer '$peer'; there are: $known" >&2; exit 2; }
  if cmp -s "$list" "$folder/$peer/complete"; then
    echo "  $peer: is in $folder/$peer"
    continue
  fi
  echo "  $peer: $(sed -n 's/^# //p' "$list" | head -n 1)"
  # shellcheck disable=SC2086
  python3 -m pip download --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: \
    --implementation cp --python-version 3.11 $platforms -d "$folder/wheels" -r "$list"
  rm -rf "$folder/$peer.new"
  python3 "$here/unpack.py" "$folder/$peer.new" "$list" "$folder/wheels"
  cp "$list" "$folder/$peer.new/complete"
  rm -rf "${folder:?}/$peer"
  mv "$folder/$peer.new" "$folder/$peer"
  du -sh "$folder/$peer" | sed 's/^/  /'
done
