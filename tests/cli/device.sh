#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kernels of the backend cuda, on a driver without a GPU (tests/plugins/mock_cuda.c): memory, copies, guards, calls, events and graphs; what a
# kernel does wrong there and what the driver refuses; and no driver at all.
. tests/support/cli.sh
# A program with no other libraries beside it.
mkdir "$WORK/program"
cp "$NORMBENCH" "$WORK/program/normbench"
export NORMBENCH=$WORK/program/normbench NORMBENCH_CONFIGS=$PWD/configs NORMBENCH_DATA=$PWD/tests/data
kernels=$(realpath "${NORMBENCH_KERNELS:-$BUILD/libnormkernels.so}")
mkdir "$WORK/driver" "$WORK/lib"
cp "$BUILD/tests/plugins/mock_cuda.so" "$WORK/driver/libcuda.so.1"
cp "$BUILD/tests/plugins/mock_cuda.so" "$WORK/driver/libnvidia-ml.so.1"
ln -s "$kernels" "$WORK/lib/libnormkernels.so"
cp "$BUILD/tests/plugins/device.so" "$WORK/lib/libnormkernels_cuda.so"
export NORMBENCH_KERNELS=$WORK/lib/libnormkernels.so
cat >"$WORK/c.json" <<'JSON'
{ "launches": 2, "blocks_per_launch": 6, "sample_ms": 0.05, "blocks": [ { "op": "rmsnorm", "kernel": "rmsnorm_right", "backend": "cuda", "shape": ["16x64", "3x7"] } ] }
JSON
mock() { # WHAT-GOES-WRONG ARGUMENTS...
    local wrong=$1
    shift
    LD_LIBRARY_PATH=$WORK/driver NORMBENCH_TEST_CUDA=$wrong NORMBENCH_TEST_CUDA_LOG=$WORK/graphs "$NORMBENCH" "$@" >"$WORK/out" 2>"$WORK/err"
}
# What the records of a run say, by expressions over them (r), by kernel (of) and the results (run).
holds() { # FOLDER EXPRESSION..
    python3 - "$WORK/$1" "${@:2}" <<'PY' || bad "$1: $(tail -n 3 "$WORK/err")"
import json, re, sys
with open(sys.argv[1] + "/results.json") as f:
    run = json.load(f)
of = lambda kernel: [r for r in run["records"] if f":rmsnorm_{kernel}_" in r["key"]]
false = [e for e in sys.argv[2:] if not eval(e, {"run": run, "r": run["records"], "of": of, "re": re})]
for e in false: print("not so:", e)
sys.exit(bool(false))
PY
}

# No driver, which is no failure of anything.
if ! ldconfig -p | grep -q 'libcuda\.so\.1'; then
    "$NORMBENCH" run "$WORK/c.json" --out "$WORK/none" >"$WORK/out" 2>"$WORK/err"
    [ $? = 77 ] || bad "without a driver: exit not 77; $(cat "$WORK/err")"
    grep -q "backend cuda: there is no NVIDIA driver: libcuda.so.1 is not found" "$WORK/out" "$WORK/err" || bad "does not say that there is no driver"
    "$NORMBENCH" info >"$WORK/out" 2>&1 || bad "info without a driver: $(cat "$WORK/out")"
    grep -q "there is no NVIDIA driver" "$WORK/out" || bad "info does not say that there is no driver"
fi
mock no_device run "$WORK/c.json" --out "$WORK/none"
[ $? = 77 ] && grep -q "no GPU that it can use: CUDA_ERROR_NO_DEVICE" "$WORK/out" "$WORK/err" || bad "no device: $(cat "$WORK/err")"
mock old run "$WORK/c.json" --out "$WORK/none"
[ $? = 77 ] && grep -q "too old: it serves CUDA 11.2, and 12.0 is needed" "$WORK/out" "$WORK/err" || bad "old driver: $(cat "$WORK/err")"
key="cuda:rmsnorm_right_cuda_f32/shape:3x7"
mock no_device replay "$key" --plugin "$WORK/lib/libnormkernels_cuda.so"
[ $? = 77 ] || bad "replay without a device: exit not 77; $(cat "$WORK/err")"

# All of the way: checked, timed by events, with a copy; short calls as a graph.
mock "" run "$WORK/c.json" --out "$WORK/right" --no-plots || bad "right: $(cat "$WORK/err")"
holds right 'run["complete"] and len(r) == 2 and all(c["status"] == "ok" and c["timing"]["time_ns"]["value"] > 0 for c in r)' \
    'all(c["timing"]["copy"] == "cuda:copy_cuda_f32" and c["timing"]["vs_copy"]["value"] > 0 for c in r)' \
    'all(not c["timing"]["evidence"]["chunked"] and c["timing"]["roofline"]["core_ns"] is None and not c["counters"] for c in r)' \
    'all(c["timing"]["roofline"]["bottleneck"] in ("L2", "launch") and c["timing"]["of_datasheet"] is None for c in r)' \
    'all(c["timing"]["evidence"]["wall_per_cpu"] is None for c in r)' \
    'all(c["backend"] == "cuda" for c in r) and run["fingerprint"]["gpu"]["driver"] == "580.65.06"' \
    'all(c["timing"]["evidence"]["floor_ns"] > 0 and len(c["digest"]) == 16 for c in r)' \
    'run["fingerprint"]["gpu"]["gbytes_per_s"] == 3352 and run["fingerprint"]["gpu"]["shared_bytes"] == 227 << 10'
state='"memory_mhz":2619,"temperature_c":41,"ecc":1,"mig":0,"throttled":\[\],"reason":null}'
grep '"type":"launch"' "$WORK/right/journal.jsonl" | grep -q '"device":{"before":{"sm_mhz":1755,'"$state"',"after":{"sm_mhz":1755,'"$state" ||
    bad "a launch does not say the clocks before and after"
# Without the management library, and where it does not tell everything, what is null has a reason.
mkdir "$WORK/unmanaged" && cp "$WORK/driver/libcuda.so.1" "$WORK/unmanaged"
if ! ldconfig -p | grep -q 'libnvidia-ml\.so\.1'; then
    LD_LIBRARY_PATH=$WORK/unmanaged NORMBENCH_TEST_CUDA='' "$NORMBENCH" run "$WORK/c.json" --launches 1 --axis shape=3x7 --out "$WORK/null" --no-plots >"$WORK/out" 2>"$WORK/err" || bad "unmanaged: $(cat "$WORK/err")"
    grep -q '"sm_mhz":null,.*"throttled":null,"reason":"libnvidia-ml.so.1 is not found"' "$WORK/null/journal.jsonl" || bad "no reason why nothing is known of clocks"
    holds null 'all(c["timing"]["evidence"]["throttled"] is None for c in r)'
fi
mock cold_sensor run "$WORK/c.json" --launches 1 --axis shape=3x7 --out "$WORK/cold_sensor" --no-plots || bad "cold_sensor: $(cat "$WORK/err")"
grep -q '"memory_mhz":2619,"temperature_c":null,.*"reason":"nvmlDeviceGetTemperature: error 1"' "$WORK/cold_sensor/journal.jsonl" || bad "no reason why a temperature is not known"
[ -s "$WORK/graphs" ] || bad "short calls were not replayed as a graph"
tests/check_schema.py reports/schema "$WORK/right" >"$WORK/schema" 2>&1 || [ $? = 77 ] || bad "$(cat "$WORK/schema")"
mock "" report "$WORK/right" --format summary || bad "report: $(cat "$WORK/err")"
grep -q '^Mock "GPU", driver 580.65.06; on ' "$WORK/out" && grep -q "cuda:rmsnorm_right" "$WORK/out" || bad "summary: $(cat "$WORK/out")"
mock "" report "$WORK/right" --format table || bad "report: $(cat "$WORK/err")"
grep -q '^Mock "GPU", driver 580.65.06; on ' "$WORK/out" || bad "the table does not name the GPU: $(head -3 "$WORK/out")"
mock "" run "$WORK/c.json" --launches 1 --axis cache=cold --axis shape=64x1024 --out "$WORK/cold" --no-plots || bad "cold: $(cat "$WORK/err")"
holds cold 'r[0]["status"] == "ok" and abs(r[0]["timing"]["of_datasheet"] * 3352 / r[0]["timing"]["gbytes_per_s"] - 1) < 1e-6'
# A millisecond each by the device's events, whatever the host's clock says: case, copy, floor, and the trial of the copies.
rm -f "$WORK/graphs"
mock counted run "$WORK/c.json" --out "$WORK/counted" --no-plots || bad "counted: $(cat "$WORK/err")"
holds counted 'all(abs(ns / 1e6 - 1) < 1e-6 for c in r for ns in (c["timing"]["time_ns"]["value"], c["timing"]["evidence"]["floor_ns"]))'
[ -s "$WORK/graphs" ] || bad "calls longer than a sample were not replayed as a graph"
rm -f "$WORK/graphs"
mock uncaptured run "$WORK/c.json" --launches 1 --axis shape=3x7 --out "$WORK/uncaptured" --no-plots || bad "uncaptured: $(cat "$WORK/err")"
holds uncaptured 'all(c["status"] == "ok" and c["timing"]["evidence"]["per_sample"] > 1 for c in r)'
[ ! -s "$WORK/graphs" ] || bad "calls that cannot be captured were replayed as a graph"
python3 - "$WORK/counted/journal.jsonl" <<'PY' || bad "a trial of copies was not timed by the device's events"
import json, sys
with open(sys.argv[1]) as f:
    trials = [c["ns"] for line in map(json.loads, f) if line["type"] == "check" for c in line["copies"]]
sys.exit(not trials or any(abs(ns / 1e6 - 1) > 1e-6 for ns in trials))
PY
mock "" run "$WORK/c.json" --launches 0 --out "$WORK/checked" --no-plots || bad "checked: $(cat "$WORK/err")"
holds checked 'all(v["verdict"] != "failed" for c in r for v in c["metamorphic"].values() if isinstance(v, dict))'
mock "" replay "$key/data:normal/seed:1/eps:1e-5/eps_place:inside/root:mul_recip/affine:gamma/weight_offset:0/stride:packed/threads:1/cache:hot" \
    --launches 1 --blocks 6 --plugin "$WORK/lib/libnormkernels_cuda.so" || bad "replay: $(cat "$WORK/err")"
mock "" info || bad "info: $(cat "$WORK/err")"
grep -q 'Mock "GPU", compute capability 9.0' "$WORK/out" && grep -q "run on an H100, 2026-11" "$WORK/out" || bad "info has no GPU: $(cat "$WORK/out")"

mock "" list kernels --format csv || bad "list: $(cat "$WORK/err")"
grep -q '^cuda:rmsnorm_right,"cuda: run on an H100, 2026-11",' "$WORK/out" || bad "list does not say where the kernels ran: $(cat "$WORK/out")"

# What a kernel does wrong, and what the driver does.
mock "" run "$WORK/c.json" --axis kernel=rmsnorm_overrun,rmsnorm_reader,rmsnorm_wrong,rmsnorm_lazy,rmsnorm_right --axis shape=3x7 --out "$WORK/wrong" --no-plots
[ $? = 1 ] || bad "wrong kernels: exit not 1"
holds wrong 'all(c["status"] == "wrote_outside" and "behind y" in c["reason"] for c in of("overrun"))' \
    'all(c["status"] == "wrote_outside" and "CUDA_ERROR_ILLEGAL_ADDRESS" in c["reason"] for c in of("reader"))' \
    'all(c["status"] == "inaccurate" and "beyond the bound" in c["reason"] for c in of("wrong"))' \
    'all(c["status"] == "wrong_when_timed" and "timed output" in c["reason"] for c in of("lazy"))' 'all(c["timing"] for c in of("right"))' 'len(r) == 5'
# A case that loses the device's context takes no other with it, where a library's thread keeps them in one process.
mkdir "$WORK/peers" && cp "$BUILD/tests/plugins/device.so" "$WORK/peers"
NORMBENCH_PEERS=$WORK/peers mock "" run "$WORK/c.json" --launches 0 --peer device --axis 'kernel=device:rmsnorm_o*,device:rmsnorm_r*' --axis shape=3x7 --out "$WORK/lost" --no-plots
holds lost 'of("reader")[0]["status"] == of("overrun")[0]["status"] == "wrote_outside"' 'of("right")[0]["status"] == "ok"'
# Of a large tensor a sample of rows is judged, and every row in which something is no number.
mock "" run "$WORK/c.json" --launches 0 --axis kernel=rmsnorm_right,rmsnorm_hole --axis shape=1100x1024 --out "$WORK/large" --no-plots
holds large '256 <= of("right")[0]["rows_judged"] <= 258 and all(c["accuracy"]["n"] == c["rows_judged"] << 10 for c in r)' \
    'of("right")[0]["status"] == "ok"' 'of("hole")[0]["status"] == "not_written" and of("hole")[0]["rows_judged"] == 1 + of("right")[0]["rows_judged"]'
mock no_memory run "$WORK/c.json" --axis shape=3x7 --out "$WORK/no_memory" --no-plots
[ $? = 2 ] && grep -q 'none of the .* cases was measured: .*no memory' "$WORK/err" || bad "no memory: $(cat "$WORK/err")"
holds no_memory 'all(c["status"] == "skipped" and "no memory" in c["reason"] for c in r)'
mock misaligned run "$WORK/c.json" --axis shape=3x7 --out "$WORK/misaligned" --no-plots
holds misaligned 'all(c["status"] == "crashed" and "CUDA_ERROR_MISALIGNED_ADDRESS" in c["reason"] for c in r)'
for wrong in throttled slowed; do
    mock "$wrong" run "$WORK/c.json" --launches 1 --axis shape=3x7 --out "$WORK/$wrong" --no-plots || bad "$wrong: $(cat "$WORK/err")"
    holds "$wrong" 'all(0 < c["timing"]["evidence"]["n_preempted"] for c in r)' "all(c['timing']['evidence']['throttled'] == ('$wrong' == 'throttled') for c in r)"
done
for format in summary table; do
    mock "" report "$WORK/throttled" --format $format || bad "report: $(cat "$WORK/err")"
    grep -qE "on a throttled GPU|The GPU was throttled during launches of 1" "$WORK/out" || bad "$format does not say that the GPU was throttled: $(cat "$WORK/out")"
done

# What calls a kernel on the host's memory has no use for these.
mock "" probe "$WORK/lib/libnormkernels_cuda.so"
grep -q "which a GPU does not see; probe its emulation" "$WORK/err" || bad "probe: $(cat "$WORK/err")"
mock "" stress "$WORK/c.json" --budget 1 --out "$WORK/stress" --no-plots || bad "stress: $(cat "$WORK/err")"
grep -q "a search calls its kernel on the host's memory" "$WORK/stress/stress.json" || bad "stress does not say that it searches nothing"
exit "$failed"
