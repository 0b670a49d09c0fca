# SPDX-License-Identifier: Apache-2.0
# Exports are what their readers take: by the rules of each, and by compare.py itself where it is installed.
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
run "$WORK/b" || true

# ---- a run ----
for format in google_benchmark google_benchmark_medians bencher benchmark_action junit; do
    "$NORMBENCH" list formats | grep -q "^$format " || fails "list formats does not know $format"
    for r in a b; do "$NORMBENCH" report "$WORK/$r" --no-write --format $format > "$WORK/$r.$format"; done
done
check google_benchmark "$WORK/a.google_benchmark" | tee "$WORK/said"
grep -Eq '^[1-9][0-9]* timed, 1 left out, 9 rows each$' "$WORK/said" || fails "launches are not repetitions, or the wrong kernel has times"
check google_benchmark "$WORK/a.google_benchmark_medians" | grep -q '1 rows each$'
check bencher "$WORK/a.bencher"
grep -q '"latency": {"value": [0-9.e+]*, "lower_value"' "$WORK/a.bencher"
! grep -q bad_ "$WORK/a.bencher" || fails "Bencher gets figures of a case that failed"
check benchmark_action "$WORK/a.benchmark_action" | grep -q '^[1-9][0-9]* lines$'
! grep -q bad_ "$WORK/a.benchmark_action" || fails "github-action-benchmark gets the time of a case that failed"
check junit "$WORK/a.junit" | grep -q ', 1 failures, '
grep -q '<failure type="inaccurate"' "$WORK/a.junit"

# compare.py wants 9 repetitions: a run for it makes them, an earlier one of fewer says so.
sed 's/"launches": 9/"launches": 2/' "$WORK/small.json" > "$WORK/few.json"
"$NORMBENCH" run "$WORK/few.json" --axis kernel=rmsnorm_twopass --no-plots --no-counters --quiet --out "$WORK/nine" --format google_benchmark > "$WORK/nine.gb"
check google_benchmark "$WORK/nine.gb" | grep -q ' 9 rows each$' || fails "a run for compare.py has not 9 repetitions"
"$NORMBENCH" run "$WORK/few.json" --axis kernel=rmsnorm_twopass --no-plots --no-counters --quiet --out "$WORK/two" > /dev/null
"$NORMBENCH" report "$WORK/two" --no-write --format google_benchmark 2>&1 > /dev/null | grep -q 'wants 9 repetitions.*--launches 9' || fails "two repetitions are not enough, and nothing says so"

# Without the journal there are no launches, and one row a case.
mkdir "$WORK/c"
cp "$WORK/a/results.json" "$WORK/c/"
"$NORMBENCH" report "$WORK/c" --no-write --format google_benchmark > "$WORK/c.google_benchmark"
check google_benchmark "$WORK/c.google_benchmark" | grep -q '1 rows each$'

# ---- a gate: one case timed, of the same code on both sides ----
kernels=$NORMBENCH_KERNELS
code=0
"$NORMBENCH" gate --baseline "$kernels" --candidate "$kernels" --time-identical --kernel rmsnorm_twopass --axis width=scalar \
    --axis dtype=f32 --axis shape=16x64 --inconclusive pass --out "$WORK/gate" --format junit --quiet > "$WORK/gate.junit" ||
    code=$?
[ $code = 0 ] || [ $code = 3 ] || fails "the gate ends with $code" # what it says of the times is not this test's business
cmp "$WORK/gate.junit" "$WORK/gate/gate.xml"
check junit "$WORK/gate/gate.xml"
check bencher "$WORK/gate/gate.bencher.json"
check benchmark_action "$WORK/gate/gate.benchmark_action.json" | grep -q '^1 lines$'
grep -q '"ratio": {"value": ' "$WORK/gate/gate.bencher.json"
head -n 1 "$WORK/gate/gate.md" | grep -Eq '^## normbench gate: (PASS|INCONCLUSIVE|REGRESSION)$'
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
counts = {"group", "machine", "bytes", "launches", "samples", "contaminated_samples", "per_sample", "involuntary_switches", "elements", "exceptional",
          "beyond_bound", "nan_unexpected", "inf_unexpected", "zero_unexpected", "nan_missing", "inf_missing", "rows_lost", "witness_row", "witness_col"}
values = {"seed", "eps", "threads", "weight_offset", "width", "k", "alpha", "momentum", "round_sum", "witness_x", "witness_got", "witness_exact"}
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

# ---- compare.py ----
compare=/usr/share/benchmark/compare.py
if [ -e $compare ] && /usr/bin/python3 -c 'import scipy' 2> /dev/null; then
    /usr/bin/python3 $compare --no-color benchmarks "$WORK/a.google_benchmark" "$WORK/b.google_benchmark" > "$WORK/compared"
    grep -Eq '_pvalue .*U Test, Repetitions: 9 vs 9' "$WORK/compared" || { cat "$WORK/compared"; fails "no test over launches"; }
    /usr/bin/python3 $compare --no-color benchmarks "$WORK/a.google_benchmark_medians" "$WORK/b.google_benchmark_medians" > "$WORK/compared"
    grep -q '^OVERALL_GEOMEAN' "$WORK/compared"
else
    echo "compare.py of libbenchmark-tools, or python3-scipy, is not installed: not asked"
fi
