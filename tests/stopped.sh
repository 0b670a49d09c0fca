#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command all of whose processes are stopped for 50 ms in every 300, as a neighbour of a virtual machine does: tests/stopped.sh COMMAND..
set -u
setsid "$@" & # its session is its number, whatever groups there are in it
command=$!
while sleep 0.25; do
    pkill -STOP -s "$command"
    sleep 0.05
    pkill -CONT -s "$command"
done &
stops=$!
trap 'kill "$stops"; pkill -CONT -s "$command"' EXIT
trap 'exit 130' INT TERM
echo "stopped for 50 ms in every 300:"
wait "$command"
exit $?
