#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command on a single CPU that a busy loop shares: tests/crowded.sh COMMAND..
set -u
cpu=$(awk '/^Cpus_allowed_list/ { split($2, first, /[-,]/); print first[1] }' /proc/self/status)
taskset -c "$cpu" bash -c 'while :; do :; done' &
neighbour=$!
trap 'kill "$neighbour"' EXIT
echo "on CPU $cpu, beside a busy loop:"
taskset -c "$cpu" "$@"
