#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Our pages in a headless Chromium (make check-browser): a run, a stress run and claims, all small, and a run of 10,000 cases that is made
# up from the small one. Screenshots go to $BUILD/browser, or where $1 says. 77: no browser here.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
shots=${1:-$build/browser}
for browser in chromium-headless-shell chromium google-chrome ''; do
    command -v "$browser" >/dev/null && break
done
[ -n "$browser" ] || { echo "no chromium-headless-shell and no chromium: the pages are not opened"; exit 77; }
command -v gnuplot >/dev/null || { echo "no gnuplot: the pages have no pictures"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
normbench=$PWD/$build/normbench
cat >"$work/small.json" <<'JSON'
{ "blocks": [
  { "kernel": ["rmsnorm_twopass", "layernorm_twopass", "rmsnorm_serial", "layernorm_welford"], "dtype": "f32", "width": "scalar",
    "shape": ["16x64", "16x256", "16x1024"], "data": "normal" },
  { "kernel": ["rmsnorm_twopass", "layernorm_onepass"], "dtype": ["f32", "bf16"], "width": "scalar", "shape": "4x64",
    "data": ["normal", "offset(100)"], "root": ["mul_recip", "div_sqrt"] } ],
  "launches": 6, "blocks_per_launch": 2 }
JSON
cat >"$work/stress.json" <<'JSON'
{ "launches": 0, "blocks": [
  { "kernel": ["rmsnorm_twopass", "layernorm_onepass", "layernorm_corrected"], "dtype": ["f32", "bf16"], "width": "scalar", "shape": "4x64",
    "data": ["normal", "offset(100)", "big", "nan"], "eps": ["1e-5", "1e-6"] },
  { "label": "fast variance", "source": "onnxruntime#28463", "text": "a large mean over a spread of 1", "op": "layernorm",
    "dtype": "f32", "width": "scalar", "shape": "1x4", "data": "values(40000,40001,40002,40003)" } ] }
JSON
"$normbench" run "$work/small.json" --quiet --out "$work/small" >/dev/null
"$normbench" stress "$work/stress.json" --search 2 --quiet --out "$work/stress" >/dev/null || [ $? = 1 ]
"$normbench" claims 'form-*' 'bn-depth' --quick --out "$work/claims" >/dev/null 2>&1 || [ $? = 1 ]
mkdir "$work/many"
/usr/bin/python3 - "$work/small/results.json" "$work/many/results.json" <<'PY'
import collections, copy, json, sys
results = json.load(open(sys.argv[1]))
few, many = results["records"], []
for n in range(10000):
    record = copy.deepcopy(few[n % len(few)])
    seed = f"/seed:{1 + n // len(few)}/" # which makes it another case
    record["key"] = record["key"].replace(f"/seed:{record['axes']['seed']}/", seed)
    record["axes"]["seed"] = seed[6:-1]
    many.append(record)
results["records"] = many
results["counts"] = collections.Counter(record["status"] for record in many)
json.dump(results, open(sys.argv[2], "w"))
PY
/usr/bin/python3 tests/support/sums.py "$work/many/results.json"
"$normbench" report "$work/many" --quiet >/dev/null
/usr/bin/python3 tests/browser/check_pages.py "$browser" "$shots" "$work/small" "$work/stress" "$work/claims" "$work/many"
echo "screenshots: $shots"
