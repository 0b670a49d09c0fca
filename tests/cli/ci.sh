#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The composite action for GitHub, step by step with the environment that a runner gives, and the script of the recipe for GitLab in a repository of its
# own. Nothing is compared by time.
set -eu
python3 -c 'import yaml' 2>/dev/null || { echo "skipped: python3-yaml is not here"; exit 77; }
fail() { echo "$*"; cat "$WORK/said" "$WORK/output" "$WORK/summary" 2>/dev/null; exit 1; }
action=$PWD/cmd/packaging/action
cc=$(command -v gcc || command -v clang)
export TMPDIR=$WORK GITHUB_ACTION_PATH=$action
for side in old bad:-DBAD; do
    "$cc" -O2 -fPIC -shared ${side#"${side%%:*}"} tests/foreign/functions.c -o "$WORK/${side%%:*}.so" 2>/dev/null ||
        "$cc" -O2 -fPIC -shared -DBAD tests/foreign/functions.c -o "$WORK/${side%%:*}.so"
done

# ---- the action: NAME=VALUE of inputs, by action.yml's own defaults, expressions and steps ---------------------------------------------
action() { # CODE INPUT=VALUE...
    local wanted=$1 code=0
    shift
    : >"$WORK/output" && : >"$WORK/summary"
    GITHUB_OUTPUT=$WORK/output GITHUB_STEP_SUMMARY=$WORK/summary python3 - "$action/action.yml" "$@" >"$WORK/said" 2>&1 <<'PY' || code=$?
import os, re, subprocess, sys, yaml
action = yaml.safe_load(open(sys.argv[1]))
given = dict(word.split("=", 1) for word in sys.argv[2:])
assert set(given) <= set(action["inputs"]), given
inputs = {}
for name, about in action["inputs"].items():
    assert about["description"] and ("default" in about or about.get("required")), name
    inputs[name] = given.get(name, about.get("default"))
    assert isinstance(inputs[name], str), name + " is no text"
outputs = {}
def value(expression):
    path = expression.split(".")
    return inputs[path[1]] if path[0] == "inputs" else outputs[path[1]][path[3]]
def fill(text):
    return re.sub(r"\$\{\{ ([a-z.-]+) \}\}", lambda m: value(m[1]), text)
for step in action["runs"]["steps"]:
    assert step["shell"] == "bash"
    open(os.environ["GITHUB_OUTPUT"], "w").close()
    env = dict(os.environ, **{k: fill(v) for k, v in step["env"].items()})
    code = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", fill(step["run"])], env=env).returncode
    outputs[step["id"]] = dict(line.split("=", 1) for line in open(os.environ["GITHUB_OUTPUT"]).read().splitlines())
    if code:
        break
else:
    code = 0
with open(os.environ["GITHUB_OUTPUT"], "w") as out:
    for name, about in action["outputs"].items():
        print(name + "=" + fill(about["value"]), file=out)
sys.exit(code)
PY
    [ $code = "$wanted" ] || fail "the action with $*: $code, wanted $wanted"
}
says() { grep -qxF -- "$2" "$WORK/$1" || fail "$1 has no $2"; }
inputs=(program="$NORMBENCH" out="$WORK/gate" baseline="$WORK/old.so")
action 0 "${inputs[@]}" candidate="$WORK/old.so" function="copy list"
says output verdict=PASS
says output exit-code=0
says summary '## normbench gate: PASS'
[ -s "$WORK/gate/gate.xml" ] && [ -s "$WORK/gate/gate.benchmark_action.json" ] || fail "no reports"
action 1 "${inputs[@]}" candidate="$WORK/bad.so" function=judged options="--screen-launches 7 --blocks 8"
says output verdict=WRONG
says said '::error::something is wrong or less accurate than before'
action 0 "${inputs[@]}" candidate="$BUILD/tests/plugins/gate_old.so" function=judged
says output 'verdict=NOT COMPARABLE'
says output exit-code=5
grep -q '^::warning::' "$WORK/said" || fail "no warning"
action 1 "${inputs[@]}" candidate="$WORK/old.so" function=copy budget=0.001 options="--time-identical --inconclusive fail"
says output verdict=INCONCLUSIVE
says said '::error::not everything could be decided, which --inconclusive fail makes a failure'
# The folder holds the reports of the gate before: they are not this one's.
action 2 "${inputs[@]}" candidate="$WORK/bad.so" function=jugded
says output verdict=
[ ! -s "$WORK/summary" ] && [ ! -e "$WORK/gate/gate.md" ] && [ ! -e "$WORK/gate/gate.xml" ] || fail "reports of an earlier gate stay"
action 2 "${inputs[@]}" candidate="$WORK/bad.so" function=judged options=--jugded
says output verdict=
for file in gate.md gate.json gate.xml gate.bencher.json gate.benchmark_action.json samples.jsonl; do echo earlier >"$WORK/gate/$file"; done
action 2 "${inputs[@]}" candidate="$WORK/bad.so" function=judged options=--jugded
[ -z "$(ls "$WORK/gate")" ] || fail "files of an earlier gate stay: $(ls "$WORK/gate")"
action 0 "${inputs[@]}" baseline="$BUILD/tests/plugins/gate_old.so" candidate="$BUILD/tests/plugins/gate_old.so" options="--axis shape=4x64"
says output verdict=PASS
! PROGRAM=/nowhere/normbench GITHUB_OUTPUT=$WORK/output "$action/build.sh" 2>/dev/null || fail "a program that is not there is taken"

# ---- GitLab ---------------------------------------------------------------------------------------------------------------------------------
mkdir -p "$WORK/project/src" "$WORK/project/normbench/build"
ln -s "$NORMBENCH" "$WORK/project/normbench/build/normbench"
cp tests/foreign/functions.c "$WORK/project/src/"
recipe=$PWD/configs/ci/gitlab-ci.yml
cd "$WORK/project"
git init -q .
git add src
git -c user.name=x -c user.email=x@example.org commit -qm one
sha=$(git rev-parse HEAD)
code=0
CI_MERGE_REQUEST_DIFF_BASE_SHA=$sha python3 - "$recipe" >"$WORK/said" 2>&1 <<'PY' || code=$?
import subprocess, sys, yaml
job = yaml.safe_load(open(sys.argv[1]))["gate"]
assert job["allow_failure"]["exit_codes"] == [4, 5, 77] and job["artifacts"]["reports"]["junit"] == "gate/gate.xml"
sys.exit(subprocess.run(["bash", "-eo", "pipefail", "-c", "\n".join(job["script"])]).returncode)
PY
[ $code = 0 ] && [ -s gate/gate.xml ] && grep -q 'PASS (identical code)' "$WORK/said" || fail "the recipe for GitLab: $code"
