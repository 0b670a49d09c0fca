#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs all claims in full on this machine, and makes its pages the published ones: reports/published/claims-NAME/.
#   usage: publish_claims.sh NAME [DIR]
# NAME: of the CPU, such as zen3. DIR: the run's folder (default results/claims-NAME); one that was cut off is continued.
# It wants the machine for itself: about an hour on two cores of a Zen 3.
set -eu
usage() { sed -n '3,5s/^# *//p' "$0" >&2 && exit 2; }
[ $# -ge 1 ] && [ $# -le 2 ] || usage
case $1 in '' | *[!a-z0-9-]*) usage ;; esac
program=${NORMBENCH:-build/normbench}
run=${2:-results/claims-$1}
page=reports/published/claims-$1
[ -x "$program" ] && [ -d reports/published ] || {
    echo "publish_claims.sh: run it in the folder of the sources, after make" >&2
    exit 2
}
if [ -d "$run" ]; then
    "$program" claims --resume "$run"
else
    "$program" claims --out "$run"
fi
grep -q '"complete":[[:space:]]*true' "$run/claims.json" || {
    echo "publish_claims.sh: the run is not complete; the same command goes on with it" >&2
    exit 1
}
rm -rf "$page"
mkdir -p "$page"
# What a reader uses: the answers and the picture; all figures stay in the run's folder.
awk '/^<details>/ { left_out = 1 }
    /^## / { left_out = /^## (Public|Steps|Evidence)/ }
    /^### / { left_out = 1 }
    !left_out { gsub(/\(claims-plots\//, "("); print }
    END { print "\nAll figures, training steps and losses are in the folder that `normbench claims` leaves." }' \
    "$run/claims.md" | cat -s >"$page/claims.md"
cp "$run/claims-plots/savings.svg" "$page/"
echo "publish_claims.sh: $page; add its line to reports/published/README.md: date, CPU, time"
