#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the sources promise about their form: an SPDX line first, headers that compile alone, stages that include only stages
# above them in src/LAYERS, every stage listed there, no file of code over 400 lines.
set -u
failed=0
bad() {
    echo "style: $*" >&2
    failed=1
}

# Without a git checkout (a release's tarball) the sources are what lies in their folders.
code=$(git ls-files -co --exclude-standard '*.c' '*.h' '*.sh' '*.py' 2>/dev/null)
[ -n "$code" ] || code=$(find cmd src kernels reports tests -name '*.[ch]' -o -name '*.sh' -o -name '*.py')
[ -n "$code" ] || bad "no sources found"
for f in $code; do
    [ -f "$f" ] || continue
    head -n 2 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || bad "$f: no SPDX line"
    lines=$(wc -l <"$f")
    [ "$lines" -le 400 ] || bad "$f: $lines lines; two things live in one room"
done

includes="-I. -I${BUILD:-build}/gen -Ikernels"
for h in src/*/*.h cmd/*.h reports/*.h kernels/*.h; do
    ${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -mavx2 -mfma -mf16c $includes -fsyntax-only -x c "$h" 2>/dev/null || bad "$h: does not compile alone"
done

layers=$(grep -v '^#' src/LAYERS)
rank() { echo "$layers" | grep -nx "$1" | cut -d: -f1; }
for f in src/*/*.[ch]; do
    stage=${f%.*}
    stage=${stage#src/}
    own=$(rank "$stage")
    [ -n "$own" ] || { bad "$f: not in src/LAYERS"; continue; }
    for included in $(sed -n 's|^#include "src/\(.*\)\.h".*|\1|p' "$f"); do
        theirs=$(rank "$included")
        [ -n "$theirs" ] || { bad "$f: includes src/$included.h, which is not in src/LAYERS"; continue; }
        [ "$theirs" -le "$own" ] || bad "$f: includes src/$included.h, a stage below it"
    done
    grep -q '^#include "\(cmd\|reports\)/' "$f" && bad "$f: includes from cmd/ or reports/"
done
# Folder by folder, so that data flows one way between the folders too.
twice=$(echo "$layers" | sed 's|/.*||' | uniq | sort | uniq -d)
[ -z "$twice" ] || bad "src/LAYERS: the stages of $twice do not stand together"
for stage in $layers; do
    ls src/"$stage".[ch] >/dev/null 2>&1 || bad "src/LAYERS: no file for stage $stage"
done

[ "$failed" = 0 ] && echo "style: 1 passed, 0 failed"
exit "$failed"
