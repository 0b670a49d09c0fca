#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tuning from file and option to calls, records and replay lines; `tune` keeps, shows and takes away.
set -eu
unset NORMBENCH_TUNING
export XDG_CACHE_HOME=$WORK/cache
expect() { [ "$1" = "$2" ] || { echo "$3: exit code $1, should be $2"; exit 1; }; }
member() { /usr/bin/python3 -c 'import json,sys; d=json.load(open(sys.argv[1]));
for k in sys.argv[2].split("."): d=d[int(k)] if k.isdigit() else d[k]
print(d)' "$@"; }

# Without a file the defaults hold, and replay lines need no word of it.
"$NORMBENCH" tune --show 2>"$WORK/err" | grep -q stream_bytes
grep -q 'no such file' "$WORK/err"
run() { "$NORMBENCH" run --axis kernel=rmsnorm_twopass --axis dtype=f32 --axis shape=2x8 --filter 'data:normal' \
    --launches 0 --no-plots --quiet "$@" >/dev/null; }
run --axis data=normal --out "$WORK/plain"
[ "$(member "$WORK/plain/results.json" fingerprint.tuning.source)" = defaults ]
if grep -q -e --tuning "$WORK/plain/results.json"; then echo "a replay line names the defaults"; exit 1; fi

# An option is used, recorded and in the replay lines; replay takes the run's own.
run --axis data=normal --tuning default,stream_bytes=4242 --out "$WORK/option"
[ "$(member "$WORK/option/results.json" fingerprint.tuning.fields.stream_bytes)" = 4242 ]
grep -q -e "--tuning 'default,stream_bytes=4242'" "$WORK/option/results.json"
"$NORMBENCH" replay "$WORK/option" rmsnorm_twopass/ --check-only --out "$WORK/again" >/dev/null 2>"$WORK/err" ||
    "$NORMBENCH" replay "$WORK/option" "$(member "$WORK/option/results.json" records.0.key)" --check-only --out "$WORK/again" >/dev/null
[ "$(member "$WORK/again/results.json" fingerprint.tuning.fields.stream_bytes)" = 4242 ]

# What is wrong is said, with what would be right.
code=0; run --axis data=normal --tuning stream_byte=1 --out "$WORK/wrong" 2>"$WORK/err" || code=$?
expect "$code" 2 "an unknown field"
grep -q "did you mean 'stream_bytes'" "$WORK/err"
code=0; "$NORMBENCH" tune --show --reset 2>/dev/null || code=$?
expect "$code" 2 "two of three"

# What is no file stays what it is, whoever names it, and that is said before anything is measured.
mkfifo "$WORK/pipe"
stays() { # SAID ARGUMENTS...
    local said=$1 code=0
    shift
    timeout 60 "$NORMBENCH" tune "$@" >"$WORK/out" 2>"$WORK/err" || code=$?
    expect "$code" 2 "tune $* and a pipe"
    [ -p "$WORK/pipe" ] || { echo "tune $*: the pipe is gone"; exit 1; }
    [ ! -s "$WORK/out" ] && grep -q "is a pipe or a device; only a file can be" "$WORK/err" && grep -q "$said" "$WORK/err" && return
    echo "tune $* and a pipe: $(cat "$WORK/out" "$WORK/err")"
    exit 1
}
stays pipe --launches 1 --out "$WORK/pipe"
export NORMBENCH_TUNING=$WORK/pipe
for arguments in "--launches 1" --reset; do
    # shellcheck disable=SC2086 # two words
    stays "NORMBENCH_TUNING=none: no file is read or written" $arguments
done
"$NORMBENCH" info 2>"$WORK/err" | grep -q "^Tuning: defaults"
grep -q 'defaults are used instead; NORMBENCH_TUNING=none' "$WORK/err"
unset NORMBENCH_TUNING

# A measurement, as short as can be: no trial goes wrong; kept, valid, shown, read by the next command, taken away.
code=0; "$NORMBENCH" tune --launches 1 >"$WORK/table" 2>"$WORK/err" || code=$?
if grep -q 'no kernel that can be tuned' "$WORK/err"; then
    expect "$code" 2 "nothing to tune"
    exit 0
fi
expect "$code" 0 "tune"
if grep 'warning: tune:' "$WORK/err"; then exit 1; fi
file=$(ls "$XDG_CACHE_HOME"/normbench/tuning-*.json)
mkdir "$WORK/kept"
cp "$file" "$WORK/kept/tuning.json"
/usr/bin/python3 tests/check_schema.py reports/schema "$WORK/kept" || [ $? = 77 ]
[ "$(member "$file" tuning)" = "$(member "$file" defaults)" ] || { echo "one launch has no interval, and no interval moves a field"; exit 1; }
"$NORMBENCH" tune --show >"$WORK/shown" 2>/dev/null
cmp "$WORK/table" "$WORK/shown"
"$NORMBENCH" info | grep -q "^Tuning: .*tuning-"
NORMBENCH_TUNING=none "$NORMBENCH" info | grep -q "^Tuning: defaults"
NORMBENCH_TUNING=none "$NORMBENCH" info | grep -qE "core probe +[0-9]+ cycles on CPU [0-9]+; uncontended: not known yet"
"$NORMBENCH" tune --reset 2>/dev/null
[ ! -e "$file" ] && [ ! -e "$file.probe" ]

# The first command that times calls of megabytes measures what suits this CPU, unless the machine is busy; then it says so.
first() { # OUT
    "$NORMBENCH" run --axis kernel=rmsnorm_fast --axis dtype=f32 --axis width=256 --axis shape=256x1024 --launches 1 --blocks 2 --no-counters --no-plots --out "$WORK/$1" >/dev/null 2>"$WORK/err"
}
echo "load 9999" >"$WORK/load"
NORMBENCH_PLAYED=$WORK/load first busy
grep -q 'first use on this CPU: the machine is busy (load 9999' "$WORK/err"
[ ! -e "$file" ]
first idle
grep -q 'first use on this CPU: what suits it was measured in' "$WORK/err"
[ "$(member "$WORK/idle/results.json" fingerprint.tuning.source)" = file ]
/usr/bin/python3 - "$file" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
asked = {t["field"] for t in d["topics"] if t.get("field")}
moved = {f for f in d["tuning"] if d["tuning"][f] != d["defaults"][f]}
assert asked == {"stream_bytes", "column_tile"}, f"the first use asks for {asked}"
assert moved <= asked, f"{moved - asked} moved without having been measured"
PY
