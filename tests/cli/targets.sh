#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each target of make that the README, the guide or `make help` names, from a folder in which nothing is built (make -n): there are rules for all that it
# needs, and no command reads a file there that no command before it wrote. Left out are gate (gate_builds.sh has it) and
# peers, which work in earnest even so, and asan, whose tests run on what another folder has; check-long makes the same.
. tests/support/cli.sh
mkdir "$WORK/tree"
find "$PWD" -mindepth 1 -maxdepth 1 ! -name 'build*' ! -name peers ! -name .git -exec ln -s -t "$WORK/tree" {} +
targets=$({ make -s help; cat README.md cmd/guide/*.md | sed -n 's/^ \{4\}//p; s/.*`\(make [^`]*\)`.*/\1/p'; } | sed 's/; /\n/g' |
    grep -oE '^make( [a-z]+(-[a-z0-9]+)*\b)?' | sed 's/^make *//; s/^$/all/' | sort -u | grep -vxE 'gate|peers|help|asan')
[ "$(wc -w <<<"$targets")" -gt 20 ] || bad "these targets alone are named: $targets"
cd "$WORK/tree" || exit 1
for target in $targets; do
    rm -rf build*
    mkdir -p build{,-asan,-avx512}/tests/kernels build{,-asan}/layouts # lists of objects are written even so
    make -n -j1 NVCC=tests/cuda/mock_nvcc.sh LIBS=jax "$target" >"$WORK/said" 2>"$WORK/err" || bad "make $target: $(head -n 3 "$WORK/err")"
    awk '($1 != "printf" || $2 != "\47") && $1 != "make" {
        if (/(^|\|\| )(cp|mv|install) /) made[$NF]
        for (i = 1; i <= NF; i++) {
            file = $i
            written = sub(/^>+/, "", file) || $(i - 1) ~ /^(-o|>+|-p)$/ || $1 ~ /^(rm|mkdir)$/
            sub(/\/$/, "", file)
            if (file ~ /tests\/identity/ || file !~ /^build[a-z0-9-]*\/[A-Za-z0-9_.\/-]+$/) continue
            if (written) made[file]
            else if (!(file in made) && !(file in asked)) { asked[file]; print file }
        } }' "$WORK/said" | while read -r file; do [ -e "$file" ] || echo "$file"; done >"$WORK/missing"
    [ -s "$WORK/missing" ] && bad "make $target reads what nothing makes: $(head -n 5 "$WORK/missing" | tr '\n' ' ')"
done
exit "$failed"
