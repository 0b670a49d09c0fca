#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Feeds the targets of build-asan/tests/fuzz/normbench-fuzz, as many at once as there are CPUs, each for $FUZZ_SECONDS, or $FUZZ_RUNS inputs:
#
#   tests/fuzz/run.sh [TARGET..]
#
# Seeds are in corpus/TARGET/. Inputs that reach new code go to $BUILD/fuzz/TARGET/ and are kept for the next time; one that breaks a
# target stays at $BUILD/fuzz/TARGET-crash-*, with the end of what was said about it.
set -u
cd "$(dirname "$0")/../.." || exit 1
export BUILD=${BUILD:-build-asan} FUZZ_SECONDS=${FUZZ_SECONDS:-30} NORMBENCH_CONFIGS=configs NORMBENCH_DATA=tests/data
fuzz=$BUILD/tests/fuzz/normbench-fuzz
limit=-max_total_time=$FUZZ_SECONDS
[ -n "${FUZZ_RUNS-}" ] && limit=-runs=$FUZZ_RUNS

if [ "${1-}" = --one ]; then
    export FUZZ_TARGET=$2
    FUZZ_FOLDER=$(mktemp -d -p "$([ -d /dev/shm ] && echo /dev/shm || echo /tmp)" normbench-fuzz-XXXXXX)
    export FUZZ_FOLDER
    trap 'rm -rf "$FUZZ_FOLDER"' EXIT
    mkdir -p "$BUILD/fuzz/$2"
    log=$BUILD/fuzz/$2.log
    "$fuzz" "$limit" -timeout="${FUZZ_TIMEOUT:-120}" -rss_limit_mb=4096 -max_len=32768 -close_fd_mask=1 -print_final_stats=1 \
        -artifact_prefix="$BUILD/fuzz/$2-" "$BUILD/fuzz/$2" "tests/fuzz/corpus/$2" >"$log" 2>&1
    code=$?
    stat() { sed -n "s/^stat::$1: *//p" "$log"; }
    if [ "$code" = 0 ]; then
        echo "$2 $(stat number_of_executed_units) $(stat average_exec_per_sec)" >>"$COUNTS"
    else
        echo "FAIL  $2 (exit $code)"$'\n'"$(grep -v '^stat::' "$log" | tail -n 40)"
    fi
    exit "$code"
fi

[ $# -gt 0 ] || mapfile -t targets < <(FUZZ_TARGET=list "$fuzz" 2>/dev/null)
[ $# -eq 0 ] || targets=("$@")
COUNTS=$(mktemp)
export COUNTS
trap 'rm -f "$COUNTS"' EXIT
mkdir -p "$BUILD/fuzz"
printf '%s\n' "${targets[@]}" | xargs -P "${JOBS:-$(nproc)}" -n 1 tests/fuzz/run.sh --one
code=$?
sort "$COUNTS" | awk '{ printf "%-12s %10d inputs %8d a second\n", $1, $2, $3; n += $2 } END { printf "fuzz: %d targets, %d inputs\n", NR, n }'
[ "$code" = 0 ] || echo "fuzz: red: $(comm -23 <(printf '%s\n' "${targets[@]}" | sort) <(cut -d' ' -f1 "$COUNTS" | sort) | paste -sd' ')"
exit "$code"
