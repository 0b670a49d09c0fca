#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cmd/gate.sh [--differs] BASE [options of `normbench gate`]: builds the kernels of the git ref BASE and of this tree with the same compiler and
# flags, in several layouts each, and compares them. Only kernels whose source or headers differ are built. Exit codes as
# `normbench gate` has them; `make gate` runs this, but make turns every code that is not 0 into 2. With --differs it only prints the
# kernels that it would compare.
# BUILD, LAYOUTS, KERNELS and WIDTHS mean what they do for make.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD build=${BUILD:-build} layouts=${LAYOUTS:-6} make=${MAKE:-make}
only_list=
[ "${1:-}" != --differs ] || { only_list=yes; shift; }
[ $# -ge 1 ] || { echo "usage: cmd/gate.sh BASE [options of normbench gate]" >&2; exit 2; }
base=$1
shift
ended() { # CODE WORDS...
    local code=$1
    shift
    echo "gate: $*" >&2
    exit "$code"
}
case $build in /*) absolute=$build ;; *) absolute=$root/$build ;; esac
commit=$(git rev-parse --verify --quiet "$base^{commit}") || ended 2 "$base is no commit here; git fetch it, or name another by BASE"

# ---- what differs ------------------------------------------------------------------------------------------------------
# Of a CPU's kernels: peers and CUDA's are not gated.
changed=$({ git diff --name-only "$commit" -- kernels; git ls-files --others --exclude-standard -- kernels; } | { grep '\.[ch]$' || true; } | { grep -vE '^kernels/(peers|cuda)/' || true; })
[ -n "$changed" ] || ended 0 "nothing under kernels/ differs from $base: PASS"

base_dir=$absolute/gate/$(git rev-parse "$commit:kernels")
if [ ! -d "$base_dir" ]; then
    mkdir -p "$base_dir.new"
    git archive "$commit" kernels | tar -x -C "$base_dir.new"
    cp VERSION "$base_dir.new/"
    mv "$base_dir.new" "$base_dir"
fi
touch "$base_dir"
find "$build/gate" -mindepth 1 -maxdepth 1 -type d ! -name candidate -printf '%T@ %p\n' | sort -rn | tail -n +4 |
    cut -d' ' -f2- | xargs -r rm -rf

# The files of a tree that include one of those named, directly or not. vec.h includes one of simd/ by a name that the build
# gives: widths are looked at by themselves.
# shellcheck disable=SC2086 # file names, one a word
reached() { # ROOT FILES
    local files=$2 more names
    while :; do
        names=$(basename -a $files | sed 's/\./\\./g' | paste -sd'|')
        more=$(cd "$1" && { printf '%s\n' $files; grep -rlE --include='*.[ch]' --exclude-dir={peers,cuda} "#include \"([a-z/]+/)?($names)\"" kernels || true; } | sort -u)
        [ "$more" != "$files" ] || break
        files=$more
    done
    printf '%s\n' $files
}
reached_in_both() { { reached "$root" "$1"; reached "$base_dir" "$1"; } | sort -u; }
kernels_of() { sed -n 's|^kernels/\(.*/\)*\([^/]*\)\.c$|\2|p' | { grep -vx table || true; } | sort; }
has_kernel() { [ -n "$(find "$1/kernels" -name "$2.c" -not -path '*/peers/*' -not -path '*/cuda/*' -print -quit)" ]; }

files=$(reached_in_both "$(sort -u <<<"$changed")")
kernels=$(kernels_of <<<"$files")
widths=$(sed -n 's|^kernels/simd/\([^/]*\)\.h$|\1|p' <<<"$files")
only_widths=
if [ -n "$widths" ]; then
    only_widths=$([ -n "$kernels" ] || echo yes)
    kernels=$({ echo "$kernels"; reached_in_both kernels/shared/vec.h | kernels_of; } | sort -u)
fi

# ---- what of it is wanted -----------------------------------------------------------------------------------------------
wanted() { # NAME PATTERNS: make's, where % is anything
    local pattern
    for pattern in $2; do
        # shellcheck disable=SC2053 # a pattern on purpose
        [[ $1 == ${pattern//%/*} ]] && return 0
    done
    return 1
}
chosen=() compared=()
for kernel in $kernels; do
    wanted "$kernel" "${KERNELS:-%}" || continue
    for side in "$root" "$base_dir"; do
        ! has_kernel "$side" "$kernel" || chosen+=("$kernel")
    done
    ! has_kernel "$root" "$kernel" || ! has_kernel "$base_dir" "$kernel" || compared+=("$kernel")
done
[ ${#chosen[@]} -gt 0 ] || ended 0 "no kernel that is wanted includes what differs from $base: PASS"
[ ${#compared[@]} -gt 0 ] || ended 5 "every kernel that differs from $base is new or gone: nothing to compare"
[ -z "$only_widths" ] || { # those wanted, of those that differ
    asked=${WIDTHS:-$widths} WIDTHS=
    for width in $widths; do
        ! wanted "$width" "$asked" || WIDTHS+=" $width"
    done
    [ -n "$WIDTHS" ] || ended 0 "no width that is wanted differs from $base: PASS"
}
if [ -n "$only_list" ]; then
    printf '%s\n' "${compared[@]}"
    exit 0
fi
kernels=$(printf '%s\n' "${chosen[@]}" | sort -u | paste -sd' ')
echo "gate: against $base ($(git rev-parse --short=12 "$commit")), in $layouts layouts: $kernels" >&2

# ---- both arms, then the gate ----------------------------------------------------------------------------------------------
arm() { # SEED ROOT BUILD ARM NAME
    local options=(LAYOUT_SEED="$1" BUILD="$3" ARM="$4" LAYOUTS="$layouts" KERNELS="$kernels")
    [ "$2" = "$root" ] || options+=(WERROR=) # what was committed is not judged by the warnings of today
    [ -z "${WIDTHS:-}" ] || options+=(WIDTHS="$WIDTHS")
    "$make" --no-print-directory -C "$2" -f "$root/Makefile" "${options[@]}" gate-layouts >&2 || ended 5 "the kernels of $5 do not build with this tree's Makefile"
}
"$make" BUILD="$build" "$build/normbench" >&2 || ended 2 "normbench does not build"
# By the name of the build folder that is used elsewhere: what an object depends on is noted under that name.
arm 2 "$root" "$build" "$build/gate/candidate" "this tree"
arm 1 "$base_dir" "$base_dir/build" "$base_dir/build/layouts" "$base"
options=()
for ((layout = 1; layout <= layouts; layout++)); do
    options+=(--baseline "$base_dir/build/layouts/layout_$layout.so" --candidate "$build/gate/candidate/layout_$layout.so")
done
# Workers load built-in kernels too; those of this build may not exist, and are not compared.
export NORMBENCH_CONFIGS=${NORMBENCH_CONFIGS:-$root/configs}
NORMBENCH_KERNELS=${NORMBENCH_KERNELS:-$build/gate/candidate/layout_1.so} exec "$absolute/normbench" gate "${options[@]}" "$@"
