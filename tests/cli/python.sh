#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A stranger in an empty folder, with the program as it is built: new-plugin writes a kernel in Python that passes run; norms
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
echo '{ "blocks": [ { "kernel": ["counted:mine", "rmsnorm_twopass"], "dtype": "f32", "width": ["256", "native"], "shape": ["1x8", "7x100"] } ],
  "launches": 6, "blocks_per_launch": 2 }' >mine.json
"$NORMBENCH" run ./mine.json --plugin counted.py --no-stress --no-counters --no-plots --case-timeout 120 --format csv --out run >out 2>err || bad "run: exit $?: $(cat out err)"
holds out '^counted:mine_f32/shape:7x100/.*,ok,'
# It is imported for its table, for two checks side by side, and in every third round of launches, of which each of two groups has six.
starts=$(wc -l <starts)
[ "$starts" -ge 2 ] && [ "$starts" -le 5 ] || bad "$starts starts for six rounds of launches; 5 are the most"
# Nor more often where no other kernel is beside it.
rm starts
"$NORMBENCH" run ./mine.json --plugin counted.py --filter 'counted:mine_f32/shape:1x8/*' --no-stress --no-counters --no-plots --case-timeout 120 --out alone \
    >out 2>err || bad "alone: exit $?: $(cat out err)"
starts=$(wc -l <starts)
[ "$starts" -ge 2 ] && [ "$starts" -le 5 ] || bad "alone: $starts starts for six rounds of launches; 5 are the most"

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
# What pointers and arrays do wrong without harm to the process is tests/python/test_worker.py's.
misbehaves() { # LIMIT KERNELS: exit code 1
    check "$tests/misbehaving.py" --axis "kernel=$2" --axis shape=8x64 --axis data=normal --no-stress --case-timeout "$1" --format csv --out "misbehaving-$1"
    [ $? = 1 ] || bad "misbehaving.py: $2: not 1: $(cat out err)"
}
misbehaves 1 misbehaving:hangs
holds out '^misbehaving:hangs_f32/.*,timed_out,'
# What hung once is not waited for again.
check "$tests/misbehaving.py" --axis kernel=misbehaving:hangs --axis shape=8x64 --axis data=normal --axis eps=1e-5,1e-6 --no-stress --case-timeout 1 --format csv --out hung
[ "$(grep -c '^misbehaving:.*,timed_out,' out)" = 1 ] || bad "a kernel that hangs is waited for twice: $(cat out err)"
holds out '^misbehaving:hangs_f32/.*,skipped,not tried: the kernel hung in a case before'
# Where waiting for it took half of the budget, it is not timed elsewhere; and it is waited for 5 s when the half that is the run's is over.
"$NORMBENCH" try "$tests/misbehaving.py" --kernel hangs_on_64_rows --no-peers --budget 5 --case-timeout 60 --quiet --out late >out 2>err
[ $? = 1 ] && grep '"timed_out"' late/journal.jsonl | grep -q 'no end within 7\.[0-9]* s"' || bad "hangs_on_64_rows: $(cat out err)"
grep -q 'not tried: the kernel hung in a case before' late/journal.jsonl || bad "it is timed: $(cat out err)"
! grep '"type":"launch".*hangs_on_64_rows' late/journal.jsonl || bad "it is timed: $(cat out err)"
[ ! -e late/checks ] || bad "it is called on the rows of stress: $(cat out err)"
misbehaves 120 misbehaving:crashes,misbehaving:raises,misbehaving:writes_beyond,misbehaving:prints,misbehaving:looks
holds err 'misbehaving.py", line [0-9]+ in crashes' # the interpreter's own words
holds out '^misbehaving:crashes_f32/.*,crashed,.*Segmentation fault'
holds out '^misbehaving:raises_f32/.*,returned_error,.*raises \(misbehaving.py:[0-9]+\): ValueError: operands .* \(misbehaving.py:[0-9]+, in right\)'
holds out '^misbehaving:writes_beyond_f32/.*,wrote_outside,.*wrote behind y'
holds out '^misbehaving:prints_f32/.*,ok,'
holds out '^misbehaving:looks_f32/.*,ok,'

# ---- what cannot be read is said ------------------------------------------------------------------------------------------------------
{ echo 'import time; time.sleep(600)' && cat mine.py; } >slow.py
NORMBENCH=$BUILD_DIR/normbench refuses 'slow.py: cannot be loaded: its code did not end within 1 s; --load-timeout gives it longer' list kernels --plugin slow.py --load-timeout 1
NORMBENCH_PYTHON=nosuch refuses 'mine.py: its program NORMBENCH_PYTHON=nosuch cannot be started: No such file' try mine.py
NORMBENCH_PACKAGE=$WORK refuses "$python: No module named 'normbench.*; install .* or set NORMBENCH_PYTHON" list kernels --plugin mine.py

# ---- files that have the names of standard modules are the user's -----------------------------------------------------------------------
mkdir shadows
cd shadows || exit 1
for name in signal json struct socket platform traceback ctypes; do echo 'raise ImportError("a file of the user")' >"$name.py"; done
"$NORMBENCH" list kernels --plugin ../mine.py >out 2>err || bad "beside signal.py, json.py: $(cat err)"
cd ..
exit "$failed"
