#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `run` finds the mistakes of tests/plugins/mistakes.h, unasked, on the rows of stress, and blames no correct kernel. Here those that take
# the most to be seen; mistakes_all.sh tries all.
. tests/support/cli.sh
set -f # a * is a kernel, not a file

some="rms_f32_rstd_ulp_up rms_bf16_flushes_output lnb_f32_dy_stride_of_x bn_bf16_ties_away rms_f32_rsqrt_declared
    rmsb_bf16_backwards rms_bf16_row_16_bit rmsb_f32_dy_nan_skipped"
kernels=${MISTAKES:-$some}

# What no check finds yet; every other mistake is found, so that a loss is seen by its name.
# rms_f32_zero_sign gives what x * rstd * gamma + 0 gives, and so no mistake that a check could see: correct kernels add a beta of 0.
missed="rms_f32_zero_sign"

plugin=$BUILD/tests/plugins/mistakes.so
sed "s/\"mistakes:KERNEL\"/$(printf '"mistakes:%s", ' $kernels | sed 's/, $//')/" >"$WORK/run.json" <<'JSON'
{ "launches": 1, "blocks_per_launch": 2, "sample_ms": 0.05,
  "blocks": [ { "op": "all", "dtype": ["f32", "f16", "bf16"], "pass": ["forward", "backward"], "shape": "8x64", "kernel": ["mistakes:KERNEL"],
                "include": { "pass": "forward", "dtype": "f32", "root": "rsqrt_nr" } },
              { "op": "batchnorm", "dtype": ["f32", "bf16"], "pass": ["forward", "backward"], "shape": "nchw:2x3x4x4", "kernel": ["mistakes:KERNEL"] } ] }
JSON
code=0
"$NORMBENCH" run "$WORK/run.json" --plugin "$plugin" --no-counters --no-plots --quiet --out "$WORK/run" >"$WORK/out" 2>"$WORK/err" || code=$?
[ "$code" = 1 ] || bad "run: exit $code: $(tail -3 "$WORK/err")"
# The checks are those of stress.
planned() { "$NORMBENCH" stress --plugin "$plugin" --kernel mistakes:rms_f32_rsqrt_declared --list 2>/dev/null | sort; }
grep -o '"mistakes:rms_f32_rsqrt_declared/[^"]*"' "$WORK/run/checks/journal.jsonl" | tr -d '"' | sort -u | diff -q - <(planned) >"$WORK/diff" ||
    bad "run checks other cases than stress"

/usr/bin/python3 - "$WORK/run/results.json" tests/plugins/mistakes.h "$kernels" $missed <<'PY' || bad "mistakes: not as promised"
import json, re, sys
records = json.load(open(sys.argv[1]))["records"]
text = open(sys.argv[2]).read()
table = text[text.index("#define WAYS(W)"):].replace("\\\n", "")
kinds = lambda part: [(way, base) for way, bases in re.findall(r"W\((\w+), ([^)]*)\)", part) for base in re.findall(r"\w+", bases)]
wrong, right = ([f"{base}_{way}" for way, base in kinds(part)] for part in table.split("/* correct ones */"))
kernels, missed = sys.argv[3].split(), sys.argv[4:]
assert "*" in kernels or set(kernels) <= set(wrong + right), "a kernel that is not in the table"
faults = ["the catalogue has shrunk"] * (len(wrong) < 225 or len(right) < 58)
if "*" not in kernels:
    wrong, right = [n for n in wrong if n in kernels], [n for n in right if n in kernels]
name = lambda r: r["variant"].split(":")[1]
checked = {name(r) for r in records if r["status"] not in ("skipped", "not_run")}
failed = {name(r): r for r in records if r["status"] not in ("ok", "out_of_range", "skipped", "not_run")}
print(f"found {len([w for w in wrong if w in failed])} of {len(wrong)} mistakes, blamed {len([r for r in right if r in failed])} of "
      f"{len(right)} correct kernels")
faults += [f"not checked: {n}" for n in wrong + right if n not in checked]
faults += [f"not found: {n}" for n in wrong if n not in failed and n not in missed]
faults += [f"found now: take {n} from the list of what is missed" for n in missed if n in failed]
faults += [f"blamed though correct: {failed[n]['key']}: {failed[n]['reason']}" for n in right if n in failed]
print("\n".join(faults))
sys.exit(bool(faults))
PY

# A preset has a case of every kernel of a plugin, whatever its dtype, pass and layout; of each formula that it has.
"$NORMBENCH" run quick --plugin "$plugin" --budget 1e6 --list 2>/dev/null | grep '^mistakes:' >"$WORK/list"
names() { tr -d '\\\n' <tests/plugins/mistakes.h | grep -o 'W([^)]*)' | awk -F'[(), ]+' '{ for (i = 3; i < NF; i++) print $i "_" $2 }' | sort -u; }
names | diff - <(sed 's/^mistakes://; s|/.*||' "$WORK/list" | sort -u) || bad "a preset leaves kernels of a plugin out"
grep -q '^mistakes:rms_f32_rsqrt_declared/.*/root:rsqrt_nr/' "$WORK/list" || bad "a kernel is not tried with its own formula"
[ "$(grep -c '^mistakes:bn_bf16_correct/shape:n[ch]' "$WORK/list")" = 2 ] || bad "BatchNorm is not tried in both layouts"
exit "$failed"
