#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command on a single CPU that two busy loops share: tests/crowded.sh COMMAND..
set -u
cpu=$(awk '/^Cpus_allowed_list/ { split($2, first, /[-,]/); print first[1] }' /proc/self/status)
for _ in 1 2; do taskset -c "$cpu" bash -c 'while :; do :; done' & done
trap 'kill $(jobs -p)' EXIT
echo "on CPU $cpu, beside two busy loops:"
taskset -c "$cpu" "$@"
