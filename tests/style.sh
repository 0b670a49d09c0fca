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

# What a check prints is wrong, a line each.
report() {
    [ -z "$1" ] && return
    failed=1
    printf '%s\n' "$1" | sed 's/^/style: /' >&2
}

report "$(for f in $code; do [ -f "$f" ] && echo "$f"; done | xargs awk '
    function finish() {
        if (file == "") return
        if (!licensed) print file ": no SPDX line"
        if (lines > 400) print file ": " lines " lines; two things live in one room"
    }
    FNR == 1 { finish(); file = FILENAME; seen[file] = 1; licensed = 0 }
    FNR <= 2 && /SPDX-License-Identifier: Apache-2.0/ { licensed = 1 }
    { lines = FNR }
    END {
        finish()
        for (i = 1; i < ARGC; i++) if (!(ARGV[i] in seen)) print ARGV[i] ": no SPDX line"
    }' || echo "the check of licences and lengths does not run")"

compile="${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -mavx2 -mfma -mf16c -I. -I${BUILD:-build}/gen -Ikernels -fsyntax-only -x c"
report "$(printf '%s\n' src/*/*.h cmd/*.h reports/*.h kernels/*.h | xargs -P "$(nproc)" -I '{}' \
    sh -c "$compile \"\$1\" 2>/dev/null || echo \"\$1: does not compile alone\"" sh '{}' || echo "the check of headers does not run")"

layers=$(grep -v '^#' src/LAYERS)
report "$(awk '
    FNR == NR { if (!/^#/) rank[$0] = ++n; next }
    FNR == 1 {
        stage = FILENAME
        gsub(/^src\/|\.[ch]$/, "", stage)
        own = stage in rank ? rank[stage] : 0
        if (!own) print FILENAME ": not in src/LAYERS"
    }
    !own { next }
    /^#include "(cmd|reports)\// { print FILENAME ": includes from cmd/ or reports/" }
    /^#include "src\/.*\.h"/ {
        included = $0
        gsub(/^#include "src\/|\.h".*$/, "", included)
        if (!(included in rank)) print FILENAME ": includes src/" included ".h, which is not in src/LAYERS"
        else if (rank[included] > own) print FILENAME ": includes src/" included ".h, a stage below it"
    }' src/LAYERS src/*/*.[ch] || echo "the check of layers does not run")"
# Folder by folder, so that data flows one way between the folders too.
twice=$(echo "$layers" | sed 's|/.*||' | uniq | sort | uniq -d)
[ -z "$twice" ] || bad "src/LAYERS: the stages of $twice do not stand together"
for stage in $layers; do
    [ -f "src/$stage.c" ] || [ -f "src/$stage.h" ] || bad "src/LAYERS: no file for stage $stage"
done

[ "$failed" = 0 ] && echo "style: 1 passed, 0 failed"
exit "$failed"
