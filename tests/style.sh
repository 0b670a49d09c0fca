#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the sources promise about their form: an SPDX line first, headers that compile alone, folders of src/ that include only
# what src/LAYERS allows them, no circle of files that include each other; of documents, that links lead to files and words are the field's.
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
    }
    FNR == 1 { finish(); file = FILENAME; seen[file] = 1; licensed = 0 }
    FNR <= 2 && /SPDX-License-Identifier: Apache-2.0/ { licensed = 1 }
    END {
        finish()
        for (i = 1; i < ARGC; i++) if (!(ARGV[i] in seen)) print ARGV[i] ": no SPDX line"
    }' || echo "the check of licences does not run")"

compile="${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -mavx2 -mfma -mf16c -I. -I${BUILD:-build}/gen -fsyntax-only -x c"
report "$(find src cmd reports kernels/kernel.h -name '*.h' | xargs -P "$(nproc)" -I '{}' \
    sh -c "$compile \"\$1\" 2>/dev/null || echo \"\$1: does not compile alone\"" sh '{}' || echo "the check of headers does not run")"

# Points of size 0: librsvg refuses a picture that has them.
report "$(find reports/published -name '*.svg' | xargs grep -lF 'scale(0.0' | sed 's/$/: a mark of scale 0, which librsvg refuses/')"

report "$(awk '
    function folder(path) { sub(/^src\//, "", path); sub(/\/[^\/]*$/, "", path); return path }
    FNR == NR {
        if (/^#/) next
        name = $1
        application = sub(/:$/, "", name)
        rank[name] = ++n
        if (application) uses[name] = " "
        for (i = 2; i <= NF; i++) {
            if (!($i in uses)) print "src/LAYERS: " name " names " $i ", which is no application above it"
            uses[name] = uses[name] $i " "
        }
        next
    }
    FNR == 1 {
        own = folder(FILENAME)
        if (!(own in rank)) { print FILENAME ": its folder is not in src/LAYERS"; nextfile }
        used[own] = 1
    }
    /^#include "(cmd|reports)\// { print FILENAME ": includes from cmd/ or reports/" }
    /^#include "src\/.*\.h"/ {
        included = $2
        gsub(/"/, "", included)
        from = folder(included)
        if (from == own) next
        if (!(from in rank)) print FILENAME ": includes " included ", whose folder is not in src/LAYERS"
        else if (from in uses && !(own in uses && index(uses[own], " " from " ")))
            print FILENAME ": includes " included ", of an application that src/LAYERS does not name for its own folder"
        else if (rank[from] > rank[own]) print FILENAME ": includes " included ", of a folder below its own"
    }
    END { for (f in rank) if (!(f in used)) print "src/LAYERS: no folder " f }
    ' src/LAYERS $(find src -name '*.[ch]' | sort) || echo "the check of layers does not run")"
# A header stands for its .c too: what either includes.
circles=$(find src reports cmd kernels -name '*.[ch]' | xargs awk '
    /^#include "(src|reports|cmd|kernels)\// {
        gsub(/"/, "", $2)
        own = FILENAME
        sub(/\.[ch]$/, "", own); sub(/\.[ch]$/, "", $2)
        if (own != $2) print $2, own
    }' | tsort 2>&1 >/dev/null | sed 's/^tsort: //' | grep -v 'input contains a loop')
[ -z "$circles" ] || bad "files include each other in a circle:" $circles

# Documents: where links lead, and the words that tests/words.txt replaces. Code and pictures are no prose.
documents=$(git ls-files -co --exclude-standard '*.md' 2>/dev/null | while read -r page; do [ ! -f "$page" ] || echo "$page"; done)
[ -n "$documents" ] || documents=$(find . -name build -prune -o -name '*.md' -print | sed 's|^\./||')
report "$(for page in $documents; do
    tr '\n' ' ' <"$page" | grep -o '](\([^) ]*\))' | sed 's/^](//; s/)$//; s/#.*//' | sort -u | while read -r link; do
        case $link in '' | *:*) continue ;; esac
        [ -e "$(dirname "$page")/$link" ] || echo "$page: no file at the link $link"
    done
done)"
report "$(echo "$documents" | grep -vE '^(src/decisions/|reports/published/|cmd/guide/glossary)' | xargs awk -F '\t' '
    FILENAME == "tests/words.txt" { if (!/^#/) word["(^|[^a-z])(" $1 ")([^a-z]|$)"] = $2; next }
    /^    / { next }
    {
        line = tolower($0)
        gsub(/`[^`]*`|"[^"]*"|\]\([^)]*\)/, " ", line)
        for (w in word) if (match(line, w)) print FILENAME ":" FNR ": " substr(line, RSTART, RLENGTH) ": write: " word[w]
    }' tests/words.txt)"

# What a document gains, one near it loses.
budget() { # MOST WHAT DOCUMENTS
    n=$(cat $3 | wc -w)
    [ "$n" -le "$1" ] || bad "$2 have $n words, at most $1: shorten one"
}
budget 22100 "documents besides decisions" "$(echo "$documents" | grep -vE '^(src/decisions|reports/published)/')"
budget 12000 decisions "$(echo "$documents" | grep '^src/decisions/')"

[ "$failed" = 0 ] && echo "style: 1 passed, 0 failed"
exit "$failed"
