#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The survey of other libraries, with a stand-in of NumPy: what it finds in it, what it leaves out and why, the page that it makes; and
# that the published page is what its data say.
. tests/support/cli.sh
. tests/support/python.sh
has numpy || { echo "skipped: $python has no NumPy; apt install python3-numpy"; exit 77; }
mkdir "$WORK/libraries" "$WORK/pages"
cat >"$WORK/libraries/norms_standin.py" <<'PY'
import numpy as np

import normbench


@normbench.kernel(op="rmsnorm", dtype="f16", param="x")
def careless(x, weight, eps):
    """RMSNorm whose squares overflow"""
    with np.errstate(all="ignore"):
        return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + np.float16(eps)) * weight
PY
printf '# needs: nothing-of-that-name==0\n# left out: it is not there\n' >"$WORK/libraries/norms_absent.py"
"$python" kernels/peers/survey/survey.py standin absent --program "$NORMBENCH" --libraries "$WORK/libraries" --out "$WORK/out" --pages "$WORK/pages" \
    --environments "$WORK/environments" --no-probe >"$WORK/said" 2>&1 || bad "survey.py: exit $?: $(cat "$WORK/said")"
"$python" kernels/peers/survey/page.py "$WORK/pages" || bad "page.py: exit $?"
page=$WORK/pages/README.md
holds() { grep -qE -- "$1" "$page" || bad "the page has no /$1/: $(cat "$page")"; }
holds '^\| standin \| careless \| - \| [DF] [0-9.e+]+\* \| - \| [1-9][0-9]* of [0-9]+ \|'
holds '^\| absent \| it is not there \|$'
"$python" kernels/peers/survey/page.py --check "$WORK/pages" || bad "--check of what was written"
echo >>"$page"
"$python" kernels/peers/survey/page.py --check "$WORK/pages" 2>"$WORK/err" && bad "--check does not see a change"
"$python" kernels/peers/survey/survey.py nosuch --program "$NORMBENCH" --libraries "$WORK/libraries" --pages "$WORK/pages" --out "$WORK/out" 2>"$WORK/err" && bad "nosuch is taken"
grep -q "no library 'nosuch': absent standin" "$WORK/err" || bad "nosuch: $(cat "$WORK/err")"

# What was run is not run again, but for a file that changed; where pip or a run fails, earlier results stay and the others go on.
printf '#!/bin/sh\nexit 2\n' >"$WORK/fails"
chmod +x "$WORK/fails"
printf '# needs: nothing-of-that-name==0\n' >"$WORK/libraries/norms_unfetched.py"
echo earlier | tee "$WORK/pages/unfetched.json" >"$WORK/earlier"
again() {
    PIP_NO_INDEX=1 "$python" kernels/peers/survey/survey.py "$@" --program "$WORK/fails" --libraries "$WORK/libraries" --out "$WORK/out" --pages "$WORK/pages" \
        --environments "$WORK/environments" --no-probe >"$WORK/said" 2>&1
}
cp "$WORK/pages/standin.json" "$WORK/before"
again standin || bad "what was run is run again: $(cat "$WORK/said")"
rm "$WORK/pages/standin.json"
again unfetched standin && bad "pip's failure is taken for a success"
grep -q '^survey: failed: unfetched$' "$WORK/said" || bad "unfetched: $(cat "$WORK/said")"
cmp "$WORK/pages/unfetched.json" "$WORK/earlier" || bad "pip's failure overwrites what was there"
[ -e "$WORK/pages/standin.json" ] || bad "the library behind one that fails is not surveyed"
echo '# changed' >>"$WORK/libraries/norms_standin.py"
cp "$WORK/before" "$WORK/pages/standin.json"
again standin && bad "the runs of another file are taken, or a failure of normbench for a success"
grep -q 'are dropped' "$WORK/said" || bad "a file that changed: $(cat "$WORK/said")"
cmp "$WORK/pages/standin.json" "$WORK/before" || bad "a failure of normbench overwrites what was there"
again standin --hard bugs && bad "the runs of another --hard are taken"

# --add: only what it names, to what is there, of the same versions.
added() { "$python" kernels/peers/survey/survey.py "$@" --libraries "$WORK/libraries" --out "$WORK/added" --pages "$WORK/pages" >"$WORK/said" 2>&1; }
rm "$WORK/pages/unfetched.json"
added standin --program "$NORMBENCH" --add probe || bad "--add probe: $(cat "$WORK/said")"
[ ! -e "$WORK/added/standin/usual" ] || bad "--add probe stresses too"
"$python" kernels/peers/survey/page.py "$WORK/pages" || bad "page.py with probe's answers: exit $?"
holds '^\| standin \| careless \| inside \| f16'
sed -i 's/"versions": {}/"versions": {"numpy": "0"}/' "$WORK/pages/standin.json"
cp "$WORK/pages/standin.json" "$WORK/before"
added standin --program "$NORMBENCH" --add probe && bad "what was found is added to another version's"
cmp "$WORK/pages/standin.json" "$WORK/before" || bad "another version's page is changed"

"$python" kernels/peers/survey/page.py --check reports/published/survey || bad "the published page is not what its data say"
[ "$(du -sk --apparent-size reports/published/survey | cut -f 1)" -lt 500 ] || bad "the survey's folder has 500 KB or more"
for program in reports/published/survey/reproducers/*.[pc]*; do
    [ -e "$program" ] || continue
    [ "$(grep -vc SPDX "$program")" -le 20 ] || bad "$program has more than 20 lines"
    [ -s "${program%.*}.txt" ] || bad "$program: its output is not beside it"
done
exit "$failed"
