#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cmd/gate.sh [--differs] [--most N] BASE [options of `normbench gate`]: builds the kernels of the git ref BASE and of this tree with the same
# compiler and flags, in several layouts each, and compares them. Only variants that the compiler reads otherwise are built, with --most N of
# them: spread over the kernels, first those that are built here already; what is left out is said. Exit codes as `normbench gate` has them;
# `make gate` runs this, but make turns every code that is not 0 into 2. With --differs it only prints the kernels whose source or headers differ.
# BUILD, LAYOUTS, KERNELS and WIDTHS mean what they do for make.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD build=${BUILD:-build} layouts=${LAYOUTS:-6} make=${MAKE:-make}
only_list='' most=100000
[ "${1:-}" != --differs ] || { only_list=yes; shift; }
[ "${1:-}" != --most ] || { most=${2:-}; shift 2; }
[ $# -ge 1 ] || { echo "usage: cmd/gate.sh [--most N] BASE [options of normbench gate]" >&2; exit 2; }
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

# The files of a tree that include one of those named, directly or not. vec.h includes one of simd/ by a name that the build gives.
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
kernels_of() { sed -n 's|^kernels/\(.*/\)*\([^/]*\)\.c$|\2|p' | { grep -vxE 'table|operations(_lowp)?' || true; } | sort; }
has_kernel() { [ -n "$(find "$1/kernels" -name "$2.c" -not -path '*/peers/*' -not -path '*/cuda/*' -print -quit)" ]; }

files=$(reached_in_both "$(sort -u <<<"$changed")")
kernels=$(kernels_of <<<"$files")
! grep -q '^kernels/simd/' <<<"$files" || kernels=$({ echo "$kernels"; reached_in_both kernels/shared/vec.h | kernels_of; } | sort -u)

# ---- what of it is wanted -----------------------------------------------------------------------------------------------
wanted() { # NAME PATTERNS: make's, where % is anything
    local pattern
    for pattern in $2; do
        # shellcheck disable=SC2053 # a pattern on purpose
        [[ $1 == ${pattern//%/*} ]] && return 0
    done
    return 1
}
compared=() alone=()
for kernel in $kernels; do
    wanted "$kernel" "${KERNELS:-%}" || continue
    if has_kernel "$root" "$kernel" && has_kernel "$base_dir" "$kernel"; then
        compared+=("$kernel")
    elif has_kernel "$root" "$kernel" || has_kernel "$base_dir" "$kernel"; then
        alone+=("$kernel")
    fi
done
[ ${#alone[@]} = 0 ] || echo "gate: new or gone, and not compared: ${alone[*]}" >&2
[ ${#compared[@]} -gt 0 ] || [ ${#alone[@]} = 0 ] || ended 5 "every kernel that differs from $base is new or gone: nothing to compare"
[ ${#compared[@]} -gt 0 ] || ended 0 "no kernel that is wanted includes what differs from $base: PASS"
if [ -n "$only_list" ]; then
    printf '%s\n' "${compared[@]}"
    exit 0
fi
# ---- which variants the compiler reads otherwise, and which of them are built --------------------------------------------------------------
made() { # ROOT BUILD ARM NAME TARGET ASSIGNMENTS...
    local options=(BUILD="$2" ARM="$3" LAYOUTS="$layouts" "${@:6}")
    [ "$1" = "$root" ] || options+=(PCH="$absolute/pch" WERROR=) # what was committed is not judged by the warnings of today
    "$make" --no-print-directory -C "$1" -f "$root/Makefile" "${options[@]}" "$5" >&2 || ended 5 "the kernels of $4 do not build with this tree's Makefile"
}
"$make" BUILD="$build" "$build/normbench" >&2 || ended 2 "normbench does not build"
here=$build/gate/candidate there=$base_dir/build/layouts
which=(KERNELS="${compared[*]}")
[ -n "${WIDTHS:-}" ] && which+=(WIDTHS="$WIDTHS") || unset WIDTHS
rm -rf "$here/texts" "$there/texts"
# By the name of the build folder that is used elsewhere: what an object depends on is noted under that name.
made "$root" "$build" "$here" "this tree" gate-texts -s "${which[@]}"
made "$base_dir" "$base_dir/build" "$there" "$base" gate-texts -s "${which[@]}"
variants=()
[ -d "$here/texts" ] || ended 5 "no variant of ${compared[*]} is wanted"
for text in "$here"/texts/*.i; do
    name=$(basename "$text" .i)
    [ ! -e "$there/texts/$name.i" ] || cmp -s "$text" "$there/texts/$name.i" || variants+=("$name")
done
[ ${#variants[@]} -gt 0 ] || ended 0 "the compiler reads the same of both: PASS"
# A kernel's variants one after another, built ones first, then f32, 256 and 512 bits; of many kernels every second, third ...
chosen=$(for name in "${variants[@]}"; do
    [ -e "$build/kernels/$name.o" ] && built=0 || built=1
    echo "$built $name"
done | sed -E 's/^(.) (.*)_(scalar|v[0-9x]+)_([a-z0-9]+)$/\1\4\3 \2 \2_\3_\4/; s/^(.)f32/\10/; s/^(.)bf16/\11/; s/^(.[01])v256 /\1a /; s/^(.[01])v512 /\1b /' | LC_ALL=C sort |
    awk '{ print n[$2]++, $0 }' | sort -s -n -k1,1 |
    awk -v most="$most" '{ name[NR] = $4; n = $1 ? n : NR }
        END { if (most > n) n = most < NR ? most : NR
              for (i = 1; i <= n; i++) if (n <= most || int(i * most / n) > int((i - 1) * most / n)) print name[i] }' | paste -sd' ')
n_chosen=$(wc -w <<<"$chosen")
left=$((${#variants[@]} - n_chosen))
echo "gate: against $base ($(git rev-parse --short=12 "$commit")), in $layouts layouts: $chosen" >&2
[ "$left" = 0 ] || echo "gate: $left of ${#variants[@]} variants that differ are left out" >&2

# ---- both arms, then the gate ----------------------------------------------------------------------------------------------
made "$root" "$build" "$here" "this tree" gate-layouts LAYOUT_SEED=2 WIDTHS=all VARIANTS="$chosen"
made "$base_dir" "$base_dir/build" "$there" "$base" gate-layouts LAYOUT_SEED=1 WIDTHS=all VARIANTS="$chosen"
options=()
for ((layout = 1; layout <= layouts; layout++)); do
    options+=(--baseline "$there/layout_$layout.so" --candidate "$here/layout_$layout.so")
done
# Workers load built-in kernels too; those of this build may not exist, and are not compared.
export NORMBENCH_CONFIGS=${NORMBENCH_CONFIGS:-$root/configs}
NORMBENCH_KERNELS=${NORMBENCH_KERNELS:-$here/layout_1.so} exec "$absolute/normbench" gate "${options[@]}" "$@"
