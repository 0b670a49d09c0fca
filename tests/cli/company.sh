#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slow, 12 s: a run of 70 hostile plugins at once, and each alone.
# Plugins that share the processes of a run each get the status that they have alone, and honest ones between them are ok.
set -eu
export TMPDIR=$WORK
mkdir "$WORK/plugins" "$WORK/alone"
names=$(sed -n '/^#define MISDEEDS/,/^static/p' tests/plugins/hostile.c | grep -o 'X([a-z_]*)' | tr -d 'X()')
for name in $names; do
    cp "$BUILD/tests/plugins/hostile.so" "$WORK/plugins/$name.so"
    cp "$BUILD/tests/plugins/hostile.so" "$WORK/plugins/late_$name.so"
done
for i in 1 2 3 4 5 6; do cp "$BUILD/tests/plugins/hostile.so" "$WORK/plugins/honest$i.so"; done
cat >"$WORK/config.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "dtype": "f32", "shape": "32x256", "affine": "gamma", "kernel": ["*bad_hostile", "rmsnorm_twopass"],
                "width": ["256", "native"] } ], "launches": 2, "blocks_per_launch": 4 }
JSON
run() { # OUT PLUGIN..
    local out=$1 plugins=()
    shift
    for plugin in "$@"; do plugins+=(--plugin "$plugin"); done
    "$NORMBENCH" run "$WORK/config.json" "${plugins[@]}" --case-timeout 2 --no-plots --no-counters --no-stress --quiet --out "$out" >"$out.table" 2>&1 || true
}
export -f run
export NORMBENCH WORK
printf '%s\n' "$WORK"/plugins/*.so | xargs -P 2 -I{} bash -c 'run "$WORK/alone/$(basename {} .so)" {}'
run "$WORK/together" "$WORK"/plugins/*.so
/usr/bin/python3 - "$WORK" <<'PY'
import glob, json, os, sys
work = sys.argv[1]
records = lambda folder: {r["key"].split(":")[0]: r for r in json.load(open(f"{folder}/results.json"))["records"]}
together, wrong, called = records(f"{work}/together"), [], {}
# What these do is done when the allocator or a thread comes to it: not always the same, but never nothing.
says = {"change_tuning": "wrote to call->tuning", "catch_faults": "replaced the handler of signal 11", "borrow_x": "wrote to x"}
by_chance = {"write_heap", "overrun_heap", "eat_memory", "unmap", "keep_writing", "crash_late"}
may_be_ok = {"eat_memory", "late_eat_memory", "late_keep_writing"}
harmless = {"round_up", "leave_a_child"}
unseen = {"late_borrow_x"}  # inputs are closed to stores in the check alone
for file in sorted(glob.glob(f"{work}/plugins/*.so")):
    name = os.path.basename(file)[:-3]
    alone, beside = records(f"{work}/alone/{name}").get(name), together.get(name)
    if not alone or not beside:
        wrong.append(f"{name}: no record {'alone' if not alone else 'beside others'}")
        continue
    called.setdefault(alone["status"], []).append(name)
    misdeed = name.removeprefix("late_")
    if misdeed in by_chance:
        wrong += [f"{name}: ok" for r in (alone, beside) if r["status"] == "ok" and name not in may_be_ok]
    elif (alone["status"] == "ok") != (misdeed in harmless or name in unseen or name.startswith("honest")):
        wrong.append(f"{name}: {alone['status']} alone")
    elif alone["status"] != beside["status"]:
        wrong.append(f"{name}: {alone['status']} alone ({alone['reason']}), {beside['status']} beside others ({beside['reason']})")
    wrong += [f"{name}: the reason is {r['reason']}" for r in (alone, beside) if name not in unseen and says.get(misdeed, "") not in (r["reason"] or "")]
    if alone["status"] == beside["status"] == "ok" and alone["accuracy"] != beside["accuracy"]:
        wrong.append(f"{name}: another result beside others than alone")
    if name.startswith("honest") and (beside["status"] != "ok" or beside["timing"]["evidence"]["n_launches"] != 2):
        wrong.append(f"{name} was not measured")
print("\n".join(wrong))
for status, names in called.items(): print(f"  {status}: {' '.join(names)}")
sys.exit(1 if wrong else 0)
PY
