#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#SBATCH --gres=gpu:1 --cpus-per-task=8 --mem=24G --time=00:10:00
# gpu.sh OUT: what a GPU says of our kernels, within 8 minutes: what it is; every kernel checked, its outputs' bits beside those of the emulation;
# NVIDIA's compute-sanitizer on one shape a kernel; other libraries beside ours; times of some shapes. A table is printed last and kept in OUT, with results,
# samples and logs: 8 files at most, 16 MB each. Needs no network and installs nothing.
#
# Runs from the source tree, from the folder that `make cuda-bundle` makes, and as a Slurm job: sbatch gpu.sh OUT, in that folder. The GPU is the
# first that the driver shows, whole or a MIG instance; nothing of it is set.
#
# Exit codes: 0 all is right, 1 a step found something wrong, 2 usage, 77 there is no device; a step that is cut off or cannot run fails nothing.
#
# GPU_CHECK, GPU_TIME, GPU_PEERS: further options of the checks, of the timings and of peers.py; GPU_LIMIT: seconds in place of 480;
# GPU_LIMITS: of single steps ("checks=400 peers=0"; 0: not run).
set -u
[ $# = 1 ] || { echo "usage: gpu.sh OUT" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$here/gpu.awk" ] || here=${SLURM_SUBMIT_DIR:-$PWD} # Slurm runs a copy that lies elsewhere
[ -f "$here/gpu.awk" ] || { echo "gpu.sh: start it in its own folder, where gpu.awk is" >&2; exit 2; }
program=$here/normbench
[ -x "$program" ] || program=${NORMBENCH:-$here/../../build/normbench}
[ -x "$program" ] || { echo "gpu.sh: $program is not built" >&2; exit 2; }
kernels=$(dirname "$program")/libnormkernels_cuda.so
mkdir -p "$1" && out=$(cd "$1" && pwd) || exit 2
rm -f "$out"/{summary.txt,log.txt,checks.json,digests.csv,sanitizer.txt,timings.json,samples.jsonl,peers.txt}{,.gz}
work=$(mktemp -d) && [ -n "$work" ] || exit 2
trap 'rm -rf "$work"' EXIT
limit_s=${GPU_LIMIT:-480} failed=0 device=0 steps=()
read -ra more_checks <<<"${GPU_CHECK-}"
read -ra more_times <<<"${GPU_TIME-}"
read -ra more_peers <<<"${GPU_PEERS-}"
export NO_COLOR=1

say() { echo "$*" | tee -a "$work/log"; }
note() { steps+=("$(printf '%-10s %4d s  %s' "$1" "$2" "$3")"); say "   $3 ($2 s)"; }
# Copies a file into OUT; one that is too large is packed.
keep() { # FILE NAME
    [ -s "$1" ] || return
    cp "$1" "$out/$2" && [ "$(stat -c %s "$out/$2")" -le 16000000 ] && return
    gzip -f "$out/$2"
}
# Seconds of a step: as GPU_LIMITS has it, else so many of the usual 480; at most what is left of all but a thirtieth, in which what is cut off ends
# and the table is made.
left() { # NAME SECONDS
    local end=$((limit_s - limit_s / 30 - SECONDS)) mine=$(($2 * limit_s / 480)) given
    for given in ${GPU_LIMITS-}; do [ "${given%%=*}" != "$1" ] || mine=${given#*=}; done
    echo $((end <= 0 ? 0 : end < mine ? end : mine))
}
# Runs a command for LIMIT seconds at most, or for what is left, or a function of this file; says what came of it and sets `code`.
step() { # NAME LIMIT WHAT COMMAND...
    local name=$1 limit=$2 start=$SECONDS result
    say "== $name: $3"
    shift 3
    limit=$(left "$name" "$limit")
    code=124
    if [ "$(type -t "$1")" = function ]; then
        "$@" >"$work/$name.out" 2>&1
        code=$?
    elif [ "$limit" -gt 0 ]; then
        timeout -s INT -k 12 "$limit" "$@" >"$work/$name.out" 2>&1
        code=$?
    fi
    head -c 4000000 "$work/$name.out" >>"$work/log" 2>/dev/null
    case $code in
    0) result=ok ;;
    77) result="no device" ; [ "$device" = 0 ] || result="not run: $(tail -n 1 "$work/$name.out")" ;;
    124 | 137) result="cut off after $limit s; what was done is kept" ;;
    *) result="FAILED (exit $code): $(grep -v '^ *$' "$work/$name.out" | tail -n 1 | cut -c 1-160)" failed=1 ;;
    esac
    note "$name" $((SECONDS - start)) "$result"
}
skip() { # NAME WHY
    say "== $1"
    note "$1" 0 "$2"
}
run() { # NAME, OPTIONS of normbench run: a command for step()
    local name=$1
    shift
    command=("$program" run "$@" --no-plots --no-stress --no-counters --case-timeout 60 --out "$work/$name")
}
csv_of() { "$program" report "$work/$1" --format csv >"$work/$1.csv" 2>>"$work/log"; }

# ---- what it is ---------------------------------------------------------------------------------------------------------------
say "normbench $("$program" --version 2>/dev/null | head -n 1), $(date -u '+%Y-%m-%d %H:%M UTC')"
say "CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-(not set)}${SLURM_JOB_ID:+, Slurm job $SLURM_JOB_ID}"
survey() {
    "$program" info --format json >"$work/info" || return
    [ -n "$(of_device refusal)" ] || return 0
    of_device refusal
    return 77
}
# A text or a number of the section "gpu"; nothing: it is null.
of_device() {
    tr '\n' ' ' <"$work/info" | grep -o '"gpu": *{.*' | grep -oE "\"$1\": *(\"([^\"\\\\]|\\\\.)*\"|[-+0-9.e]+)" | head -n 1 |
        sed -E 's/^[^:]*: *//; s/^"(.*)"$/\1/; s/\\(.)/\1/g'
}
step device 60 "what it is" survey
cat "$work/device.out"
[ "$code" != 0 ] || device=1
command -v nvidia-smi >/dev/null && nvidia-smi >>"$work/log" 2>&1
[ "$device" = 0 ] || say "   $(of_device name), compute capability $(of_device compute_capability), driver $(of_device driver)"

# ---- every kernel, and the bits of the emulation ----------------------------------------------------------------------------------
# The emulation takes the same ways as this device: with clusters or without, with as much shared memory.
emulated=
if [ "$device" = 1 ]; then
    case $(of_device compute_capability) in 9.* | 10.*) clusters=1 ;; *) clusters=0 ;; esac
    run emulated "$here/check.json" --axis backend=cuda-emulated "${more_checks[@]}"
    NORMBENCH_EMULATED="clusters=$clusters shared=$(of_device shared_bytes)" timeout -s INT -k 15 $((1 + $(left checks 160))) "${command[@]}" >"$work/emulated.out" 2>&1 &
    emulated=$!
    # Nothing is timed until the sanitizer is through: what others are to run is compiled, into the caches on disk that they look into later.
    export TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton
    mkdir "$work/inductor"
    timeout -k 5 $((1 + $(left peers 210))) python3 "$here/peers.py" "$kernels" --warm "${more_peers[@]}" >"$work/warm.out" 2>&1 &
    warmed=$!
fi
run checks "$here/check.json" --axis backend=cuda "${more_checks[@]}"
step checks 160 "every kernel, against the oracle" "${command[@]}"
if [ "$device" = 1 ]; then
    wait "$emulated"
    cat "$work/emulated.out" >>"$work/log"
    compare() {
        if ! csv_of checks || ! csv_of emulated; then
            echo "there are no results to compare"
            return 77
        fi
        awk -v mode=digests -f "$here/gpu.awk" "$work/emulated.csv" "$work/checks.csv" >"$work/digests" && ! grep ',different$' "$work/digests"
    }
    step digests 20 "the outputs' bits beside those of the emulation" compare
    cat "$work/digests.out"
else
    skip digests "no device"
fi
keep "$work/checks/results.json" checks.json
keep "$work/digests" digests.csv

# ---- compute-sanitizer ------------------------------------------------------------------------------------------------------------------
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer "${CUDA_HOME:-/none}/bin/compute-sanitizer" 2>/dev/null | head -n 1)
calls=$here/calls
[ -x "$calls" ] || calls=$here/../../build/tests/cuda/calls
# In one process (calls.c): under the sanitizer each of a run's ended by exit code 255.
run one_each "$here/check.json" --axis backend=cuda --axis dtype=bf16 --axis shape=5x1000,nchw:2x5x6x6 --axis root=mul_recip --axis eps_place=inside \
    --axis cast=after --axis mode=training "${more_checks[@]}" --list
[ "$device" = 0 ] || "${command[@]}" >"$work/keys" 2>>"$work/log"
for tool in memcheck racecheck; do
    if [ "$device" = 0 ]; then
        skip "$tool" "no device"
    elif [ -z "$sanitizer" ]; then
        skip "$tool" "not run: there is no compute-sanitizer"
    else
        step "$tool" 40 "compute-sanitizer on one shape a kernel" "$sanitizer" --tool "$tool" --error-exitcode 9 "$calls" "$kernels" "$work/keys"
        head -c 7000000 "$work/$tool.out" >>"$work/sanitizer"
    fi
done
keep "$work/sanitizer" sanitizer.txt

# ---- others -----------------------------------------------------------------------------------------------------------------------------
if [ "$device" = 0 ]; then
    skip peers "no device"
elif ! command -v python3 >/dev/null; then
    skip peers "not run: there is no python3"
else
    wait "$warmed"
    cat "$work/warm.out" >>"$work/log"
    step peers 140 "PyTorch and what it brings" python3 "$here/peers.py" "$kernels" --seconds $(($(left peers 140) * 9 / 10)) "${more_peers[@]}"
    keep "$work/peers.out" peers.txt
fi

# ---- times ------------------------------------------------------------------------------------------------------------------------------
run timings "$here/time.json" --axis backend=cuda "${more_times[@]}"
step timings 100 "bf16, cold, beside copies on the device" "${command[@]}"
[ -f "$work/timings/results.json" ] && csv_of timings
keep "$work/timings/results.json" timings.json
keep "$work/timings/journal.jsonl" samples.jsonl

# ---- the table --------------------------------------------------------------------------------------------------------------------------
table() {
    echo
    echo "GPU: $([ "$device" = 1 ] && echo "$(of_device name), driver $(of_device driver), $(date -u +%F)" || echo "no device")"
    [ ! -s "$work/checks.csv" ] || awk -v mode=checks -f "$here/gpu.awk" "$work/checks.csv"
    [ ! -s "$work/timings.csv" ] || awk -v mode=times -f "$here/gpu.awk" "$work/timings.csv"
    [ ! -s "$work/peers.out" ] || sed -n '/^peers:/,$p' "$work/peers.out"
    printf '\n%s\n' "steps:"
    printf '  %s\n' "${steps[@]}"
}
table >"$work/summary"
keep "$work/log" log.txt
keep "$work/summary" summary.txt
cat "$work/summary"
[ "$device" = 1 ] || exit 77
exit "$failed"
