#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# get.sh FOLDER PEER..: downloads the wheels that wheels/PEER.txt lists from PyPI, each held to its SHA-256, into FOLDER/wheels/, and
# unpacks headers and libraries into FOLDER/PEER/{include,lib}; or get_PEER.sh compiles them. What is there is not fetched again; nothing is
# installed. A peer that cannot be had does not keep the others: exit code 1 at the end.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
shift
known=$(cd "$here" && printf '%s\n' wheels/*.txt get_*.sh | sed 's/^wheels.//;s/^get_//;s/\.[a-z]*$//' | tr '\n' ' ')
platforms="--platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_25_x86_64 \
  --platform manylinux2014_x86_64 --platform manylinux1_x86_64 --platform any"
fail() { echo "make peers: $*" >&2; exit 1; }

for peer; do
  [ -f "$here/wheels/$peer.txt" ] || [ -f "$here/get_$peer.sh" ] || { echo "make peers: no peer '$peer'; there are: $known" >&2; exit 2; }
done
if [ $# != 1 ]; then
  code=0
  for peer; do
    "$0" "$folder" "$peer" || code=1
  done
  exit $code
fi

peer=$1
list=$here/wheels/$peer.txt
[ ! -f "$here/get_$peer.sh" ] || list=$here/get_$peer.sh
if [ "$peer:${ONEDNN_SOURCE:+own}" != onednn-omp:own ] && cmp -s "$list" "$folder/$peer/complete"; then
  echo "  $peer: is in $folder/$peer"
  exit 0
fi
echo "  $peer: $(sed -n '/SPDX/d;s/^# //p' "$list" | head -n 1)"
rm -rf "$folder/$peer.new"
case $list in
*.sh) "$list" "$folder/$peer" ;;
*)
  [ "$(uname -m)" = x86_64 ] || fail "the wheels are for x86_64; elsewhere build the library and give it with --peer-lib"
  python3 -m pip --version >/dev/null 2>&1 || fail "needs pip: apt-get install python3-pip"
  # shellcheck disable=SC2086
  python3 -m pip download --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: \
    --implementation cp --python-version 3.11 $platforms -d "$folder/wheels" -r "$list"
  python3 "$here/unpack.py" "$folder/$peer.new" "$list" "$folder/wheels"
  ;;
esac
cp "$list" "$folder/$peer.new/complete"
# Sources of one's own are no release: the next call gets that.
[ "$peer:${ONEDNN_SOURCE:+own}" != onednn-omp:own ] || echo "# from $ONEDNN_SOURCE" >>"$folder/$peer.new/complete"
rm -rf "${folder:?}/$peer"
mv "$folder/$peer.new" "$folder/$peer"
du -sh "$folder/$peer" | sed 's/^/  /'
