#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make deb: the Debian package, into $BUILD/deb, of what git has at HEAD (elsewhere of what lies here). KERNEL_LIBRARY=build/libnormkernels.so
# takes kernels that are built already; KERNELS, WIDTHS and CC as for make.
set -eu
here=cmd/packaging/debian
work=$BUILD/deb
version=$(cat VERSION)
name=normbench-$version
[ "$(sed -n '1s/.*(\(.*\)).*/\1/p' $here/changelog)" = "$version" ] || {
    echo "normbench: error: $here/changelog: its first version is not that of VERSION, $version" >&2
    exit 2
}
# shellcheck disable=SC2046 # a word for each package, without its version
tests/deps.sh dpkg-dev build-essential $(sed -n 's/^Build-Depends: //p' $here/control | sed 's/([^)]*)//g; s/debhelper-compat/debhelper/' | tr -d ,)
rm -rf "${work:?}/$name" "$work"/normbench_* "$work"/normbench-dbgsym_*
mkdir -p "$work/$name"
if [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$PWD" ]; then
    [ -z "$(git status --porcelain --untracked-files=no)" ] || echo "normbench: note: the package is made of HEAD, without the changes that are not committed" >&2
    git archive HEAD | tar -x -C "$work/$name"
else
    tar -c --exclude='./build*' --exclude=./results --exclude=./peers --exclude=./.git . | tar -x -C "$work/$name"
fi
mv "$work/$name/$here" "$work/$name/debian"
[ -z "${KERNEL_LIBRARY-}" ] || {
    echo "normbench: note: the kernels of the package are those of $KERNEL_LIBRARY" >&2
    KERNEL_LIBRARY=$(realpath "$KERNEL_LIBRARY")
    export KERNEL_LIBRARY
}
# What the make above was told of its own folders is not for this build.
unset BUILD PREFIX DESTDIR MAKEFLAGS MFLAGS MAKELEVEL NORMBENCH_KERNELS
(cd "$work/$name" && dpkg-buildpackage --no-sign)
rm -rf "${work:?}/$name"
git rev-parse HEAD >"$work/commit" 2>/dev/null || rm -f "$work/commit"
ls -l "$work"/normbench_*.deb
