#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slow, 17 s: a Python is started for each command, and anew behind each kernel that misbehaves.
# A stranger in an empty folder, with the program as it is built: new-plugin writes a kernel in Python that passes try, run and stress; norms
# in NumPy and PyTorch are right; functions that misbehave are named, with what they did and where.
. tests/support/cli.sh
. tests/support/python.sh
tests=$PWD/tests/python package=$PWD/cmd/packaging/python/src
has numpy || { echo "skipped: $python has no NumPy; apt install python3-numpy"; exit 77; }
mkdir "$WORK/empty"
cd "$WORK/empty" || exit 1
holds() { grep -qE -- "$2" "$1" || bad "$1 has no /$2/: $(cat "$1")"; }
check() { # FILE OPTIONS..
    local file=$1
    shift
    "$NORMBENCH" run quick --plugin "$file" --filter "$(basename "$file" .py):*" --launches 0 --no-plots --quiet --case-timeout 120 "$@" >out 2>err
}

# ---- what new-plugin writes -------------------------------------------------------------------------------------------------------
"$NORMBENCH" new-plugin mine --lang python >out 2>err || bad "new-plugin: $(cat err)"
holds out '^normbench try mine\.py$'
grep -q -e example -e SPDX mine.py && bad "the example's name or licence is left: $(cat mine.py)"
[ ! -e kernel.h ] || bad "a kernel in Python needs no kernel.h"
{ cat mine.py && echo 'open("starts", "a").write("once\n")'; } >counted.py
"$NORMBENCH" try counted.py --budget 5 --no-peers --case-timeout 120 --out try >out 2>err || bad "try: exit $?: $(cat out err)"
holds out '^counted:mine_f32: rmsnorm forward f32 of counted\.py$'
# It is imported for its table, for two checks side by side, and in every third round of launches, of which each of two groups has seven.
"$python" - try/journal.jsonl starts <<'PY' || bad "try: imports the file too often"
import json, sys

launches = sum(json.loads(line)["type"] == "launch" for line in open(sys.argv[1]))
starts, allowed = len(open(sys.argv[2]).readlines()), 1 + 2 + (7 + launches - 2 * 7 + 2) // 3
if not 2 <= starts <= allowed:
    sys.exit(f"{starts} starts for {launches} launches; {allowed} are the most")
PY
holds out '^right\? +yes: [0-9]+ cases, [1-9][0-9]+ of them hard rows'
holds out '^how fast\? +in cache'
check mine.py --axis shape=1x8,7x1000 --axis data=normal --out run || bad "run: exit $?: $(cat out err)"
"$NORMBENCH" probe mine.py --case-timeout 120 >out 2>err || bad "probe: exit $?: $(cat out err)"
"$NORMBENCH" tolerance --plugin mine.py --trials 2 --n 64 >out 2>err || bad "tolerance: exit $?: $(cat out err)"
holds out '^mine:mine_f32, '
cat >claim.json <<'JSON'
{ "title": "mine", "statement": "It is right.", "scope": "a test", "sources": [{ "cite": "a test", "says": "so" }],
  "experiments": { "right": { "kind": "accuracy", "blocks": [{ "kernel": "mine:mine", "shape": "4x64", "width": "native" }] } },
  "readings": [{ "id": "right", "text": "right", "experiment": "right", "expect": [{ "figure": "failed", "form": "equals", "to": 0 }] }] }
JSON
"$NORMBENCH" claims ./claim.json --plugin mine.py --quick --out claims >out 2>err || bad "claims: exit $?: $(cat out err)"
holds out '^claim +REPRODUCED'

# ---- norms as they are written ------------------------------------------------------------------------------------------------------
check "$tests/norms.py" --no-stress --out norms || bad "norms.py: exit $?: $(cat out err)"
if has torch; then
    check "$tests/norms_torch.py" --no-stress --out torch || bad "norms_torch.py: exit $?: $(cat out err)"
else
    echo "$python has no PyTorch: its norms are not tried"
fi

# A kernel whose only formulas are unusual ones has cases too.
cat >unusual.py <<'PY'
import numpy as np

import normbench


@normbench.kernel(op="rmsnorm", dtype="f16", param="x", cast="before", weight_offset=1, eps_place="outside", root="div_sqrt")
def unusual(x, gamma, eps):
    wide = x.astype("f4")
    scaled = wide / (np.sqrt(np.mean(wide * wide, axis=1, keepdims=True)) + np.float32(eps))
    return scaled.astype("f2") * (np.float32(1) + gamma).astype("f2")
PY
check unusual.py --no-stress --out unusual || bad "unusual.py: exit $?: $(cat out err)"
grep -q '"key": "unusual:.*/eps_place:outside/root:div_sqrt/.*/cast:before/weight_offset:1/param_dtype:x/' unusual/results.json ||
    bad "another formula: $(grep '"key"' unusual/results.json)"

"$NORMBENCH" stress --plugin unusual.py --list >out 2>err || bad "stress unusual.py: exit $?: $(cat err)"
[ "$(grep -c '^unusual:.*/eps_place:outside/root:div_sqrt/.*/cast:before/weight_offset:1/param_dtype:x/' out)" -gt 50 ] || bad "hard rows: $(cat out err)"

# ---- a test of the user's -----------------------------------------------------------------------------------------------------------
cat >test_mine.py <<'PY'
import numpy as np

import normbench
from mine import mine


def twice(x, gamma, eps):
    return 2 * mine(x, gamma, eps)


def test_right():
    assert normbench.check(mine, hard_rows=False)


def test_wrong():
    report = normbench.check(twice, op="rmsnorm", hard_rows=False)
    assert not report and "inaccurate" in repr(report) and "normbench replay" in str(report), report


def test_close():
    x = np.random.default_rng(1).normal(size=(4, 64)).astype("f4")
    exact = x / np.sqrt(np.mean(x.astype("f8") ** 2, axis=1, keepdims=True) + 1e-6)
    normbench.assert_close(mine(x, None, 1e-6), exact, op="rmsnorm", dtype="f32", eps=1e-6, trials=2)


if __name__ == "__main__":
    test_right()
    test_wrong()
    test_close()
    assert normbench.load("norms", frame=False)[0]["status"] == "ok"
PY
PYTHONPATH=$package XDG_CACHE_HOME=$WORK "$python" test_mine.py >out 2>err || bad "test_mine.py: $(cat out err)"

# ---- what misbehaves is named ---------------------------------------------------------------------------------------------------------
code=0
check "$tests/misbehaving.py" --no-stress --case-timeout 20 --out misbehaving || code=$?
[ $code = 1 ] || bad "misbehaving.py: exit $code, wanted 1: $(cat out err)"
holds err 'misbehaving.py", line [0-9]+ in crashes' # the interpreter's own words
"$python" - misbehaving/results.json <<'PY' || bad "misbehaving.py: not as promised"
import json, re, sys

expected = {
    "crashes": ("crashed", "Segmentation fault"),
    "hangs": ("timed_out", ""),
    "forks": ("returned_error", r"forks \(misbehaving.py:\d+\): forks"),
    "raises": ("returned_error", r"raises \(misbehaving.py:\d+\): ValueError: operands .* \(misbehaving.py:\d+, in right\)"),
    "exits": ("returned_error", r"SystemExit: no more \(misbehaving.py:\d+, in exits\)"),
    "keeps": ("returned_error", r"keeps \(misbehaving.py:\d+\): keeps a view of x after the call"),
    "writes_beyond": ("wrote_outside", "wrote behind y"),
    "shortens": ("returned_error", r"y has shape \(64, 383\), not \(64, 384\)"),
    "widens": ("returned_error", "y is float64, not float32"),
    "is_wrong": ("inaccurate", "beyond the bound"),
    "prints": ("ok", ""),
}
seen = {}
for record in json.load(open(sys.argv[1]))["records"]:
    name = record["variant"].partition(":")[2].removesuffix("_f32")
    status, reason = expected[name]
    seen[name] = True
    if record["status"] != status or not re.search(reason, record["reason"] or ""):
        sys.exit(f"{name}: {record['status']}: {record['reason']}")
missing = set(expected) - set(seen)
if missing:
    sys.exit(f"not among the results: {missing}")
PY

# ---- what cannot be read is said ------------------------------------------------------------------------------------------------------
{ echo 'import time; time.sleep(2)' && cat mine.py; } >slow.py
refuses 'slow.py: cannot be loaded: its code did not end within 1 s; --load-timeout gives it longer' list kernels --plugin slow.py --load-timeout 1
"$NORMBENCH" list kernels --plugin slow.py --load-timeout 600 >out 2>err || bad "--load-timeout 600: $(cat err)"
echo 'import nothing_of_that_name' >none.py
refuses "none.py: ModuleNotFoundError.*\(none.py:1, in <module>\)" try none.py
echo 'x = 1' >none.py
refuses "none.py: no kernel in it: @normbench.kernel" try none.py
NORMBENCH_PYTHON=nosuch refuses 'mine.py: its program NORMBENCH_PYTHON=nosuch cannot be started: No such file' try mine.py
NORMBENCH_PACKAGE=$WORK refuses "$python: No module named 'normbench.*; install .* or set NORMBENCH_PYTHON" list kernels --plugin mine.py

# ---- files that have the names of standard modules are the user's -----------------------------------------------------------------------
mkdir shadows
cd shadows || exit 1
for name in signal json struct socket platform traceback ctypes; do echo 'raise ImportError("a file of the user")' >"$name.py"; done
"$NORMBENCH" list kernels --plugin ../mine.py >out 2>err || bad "beside signal.py, json.py: $(cat err)"
cd ..
exit "$failed"
