#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel of the Python package into $BUILD/wheel/dist: the modules, and what `make install` installs, under normbench/program. The
# libraries that the program is linked to lie in it too, with their licences; auditwheel puts them there and names the oldest libc that the
# wheel runs on. The tools come from PyPI into a virtual environment in the build folder.
#
#   BUILD=build KERNEL_LIBRARY=build/libnormkernels.so cmd/packaging/python/wheel.sh
set -eu
here=cmd/packaging/python
work=$BUILD/wheel
tools=$work/tools
stage=$work/stage
program=$stage/src/normbench/program
if ! cmp -s $here/tools.txt "$tools/tools.txt"; then
    rm -rf "$tools"
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check -r $here/tools.txt
    cp $here/tools.txt "$tools/tools.txt"
fi
rm -rf "$stage" "$work/dist"
mkdir -p "$stage/licenses" "$work/dist"
cp -r $here/pyproject.toml $here/setup.py $here/README.md $here/src VERSION LICENSE "$stage"
find "$stage" -name __pycache__ -prune -exec rm -r {} +
make BUILD="$BUILD" KERNEL_LIBRARY="$KERNEL_LIBRARY" DESTDIR= PREFIX="$(cd "$stage" && pwd)/src/normbench/program" install-built
# What is of one machine, of a compiler's user, or there already.
rm -rf "$program/share/pkgconfig" "$program/lib/normbench/peers" "$program"/lib/normbench/libnormkernels_* "$program/share/normbench/python"
# Of what the program is linked to, Debian has the licences.
ldd "$program/bin/normbench" | awk '$2 == "=>" { print $3 }' | while read -r library; do
    package=$(dpkg-query -S "$(readlink -f "$library")" 2>/dev/null | head -n 1 | cut -d: -f1)
    case $package in '' | libc6) continue ;; esac
    cp "/usr/share/doc/$package/copyright" "$stage/licenses/$package.txt"
done
"$tools/bin/python" -m build --quiet --wheel --no-isolation --outdir "$work/plain" "$stage"
PATH=$(cd "$tools/bin" && pwd):$PATH
auditwheel repair --wheel-dir "$work/dist" "$work"/plain/*.whl
rm -rf "$work/plain"
twine check --strict "$work"/dist/*.whl
