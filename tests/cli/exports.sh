# SPDX-License-Identifier: Apache-2.0
# Exports are what their readers take, by the rules of each.
set -euo pipefail
check() { /usr/bin/python3 tests/check_exports.py "$@"; }
fails() { echo "$1"; exit 1; }
cat > "$WORK/small.json" <<'JSON'
{ "blocks": [ { "op": ["rmsnorm", "layernorm"], "dtype": ["f32", "bf16"], "shape": "16x64", "width": "scalar", "data": "normal",
                "kernel": ["*_twopass", "*bad_*"] },
              { "op": "rmsnorm", "dtype": "f32", "shape": "16x64", "width": "native", "kernel": "*bad_*" } ],
  "launches": 9, "blocks_per_launch": 2 }
JSON
run() { "$NORMBENCH" run "$WORK/small.json" --plugin "$BUILD/tests/plugins/wrong.so" --no-plots --no-counters --quiet --out "$1" > /dev/null; }
code=0
run "$WORK/a" || code=$?
[ $code = 1 ] || fails "a run with a wrong kernel ends with $code, wanted 1"

# ---- a run ----
for format in bencher benchmark_action junit; do
    "$NORMBENCH" list formats | grep -q "^$format " || fails "list formats does not know $format"
    "$NORMBENCH" report "$WORK/a" --no-write --format $format > "$WORK/a.$format"
done
check bencher "$WORK/a.bencher"
grep -q '"latency": {"value": [0-9.e+]*, "lower_value"' "$WORK/a.bencher"
! grep -q bad_ "$WORK/a.bencher" || fails "Bencher gets figures of a case that failed"
check benchmark_action "$WORK/a.benchmark_action" | grep -q '^[1-9][0-9]* lines$'
! grep -q bad_ "$WORK/a.benchmark_action" || fails "github-action-benchmark gets the time of a case that failed"
check junit "$WORK/a.junit" | grep -q ', 1 failures, '
grep -q '<failure type="inaccurate"' "$WORK/a.junit"

# ---- a gate: one case timed, of the same code on both sides ----
kernels=$NORMBENCH_KERNELS
"$NORMBENCH" gate --baseline "$kernels" --candidate "$kernels" --time-identical --kernel rmsnorm_twopass --axis width=scalar \
    --axis dtype=f32 --axis shape=16x64 --out "$WORK/gate" --format junit --quiet > "$WORK/gate.junit"
cmp "$WORK/gate.junit" "$WORK/gate/gate.xml"
check junit "$WORK/gate/gate.xml"
check bencher "$WORK/gate/gate.bencher.json"
check benchmark_action "$WORK/gate/gate.benchmark_action.json" | grep -q '^1 lines$'
grep -q '"ratio": {"value": 1, ' "$WORK/gate/gate.bencher.json"
head -n 1 "$WORK/gate/gate.md" | grep -Eq '^## normbench gate: PASS$'
if /usr/bin/python3 -c 'import jsonschema' 2> /dev/null; then
    /usr/bin/python3 -W ignore tests/check_schema.py reports/schema "$WORK/gate"
fi

# Identical code is not timed, and its entry stays in the series.
"$NORMBENCH" gate --baseline "$kernels" --candidate "$kernels" --kernel rmsnorm_twopass --axis width=scalar --axis dtype=f32 \
    --axis shape=16x64 --format benchmark_action --out "$WORK/same" --quiet > "$WORK/identical"
check benchmark_action "$WORK/identical" | grep -q '^1 lines$'
grep -q '"value": 1,' "$WORK/identical" || fails "identical code: $(cat "$WORK/identical")"
check bencher "$WORK/same/gate.bencher.json"
grep -q '"ratio": {"value": 1, ' "$WORK/same/gate.bencher.json" || fails "identical code: $(cat "$WORK/same/gate.bencher.json")"

# ---- CSV by pandas, Markdown by GitHub's parser ----
asked() { /usr/bin/python3 -c "import $1" 2> /dev/null && return; echo "python3-$1 is not installed: not asked"; false; }
"$NORMBENCH" report "$WORK/a" --no-write --format csv > "$WORK/a.csv"
if asked pandas; then
    /usr/bin/python3 - "$WORK/a.csv" <<'PY'
import sys
import pandas
frame = pandas.read_csv(sys.argv[1])
assert len(frame) == 5 and frame.key.is_unique, frame.shape
empty = [name for name in frame.columns if frame[name].isna().all()]
assert not empty, f"always empty: {empty}"
units = ("_ns", "_ms", "_per_s", "_ratio", "_ratio_to_bound", "_ulp", "_u", "_sigma", "_roundings")
counts = {"group", "machine", "bytes", "launches", "samples", "preempted_samples", "per_sample", "involuntary_switches", "elements", "exceptional",
          "beyond_bound", "nan_unexpected", "inf_unexpected", "zero_unexpected", "nan_missing", "inf_missing", "rows_lost", "reproducer_row", "reproducer_col"}
values = {"seed", "eps", "threads", "weight_offset", "width", "k", "alpha", "momentum", "round_sum", "reproducer_x", "reproducer_got", "reproducer_exact"}
counters = set(frame.columns[list(frame.columns).index("replay"):]) & {"task_clock_ns", "page_faults", "context_switches", "cpu_migrations"}
numbers = [name for name in frame.select_dtypes("number").columns if name not in counts | values | counters]
bare = [name for name in numbers if not name.endswith(units)]
assert not bare, f"without a unit: {bare}"
assert frame.time_ns.dropna().gt(0).all() and frame.time_ns.notna().sum() == (frame.status == "ok").sum(), frame[["status", "time_ns"]]
PY
fi
if command -v cmark-gfm > /dev/null; then
    "$NORMBENCH" report "$WORK/a" --no-write --format markdown | cmark-gfm --extension table > "$WORK/a.html"
    [ "$(grep -c '<tr>' "$WORK/a.html")" -ge 6 ] || fails "GitHub's Markdown has no table of the cases"
    ! grep -q '<p>|' "$WORK/a.html" || fails "a table that GitHub's Markdown does not see"
else
    echo "cmark-gfm is not installed: not asked"
fi
