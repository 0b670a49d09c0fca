#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# took.sh FILE..: of lines "SECONDS NAME" the ten that took longest.
echo "what took longest (seconds):"
sort -rn "$@" | head -n 10 | awk '{ seconds = $1; $1 = ""; printf "%8.1f %s\n", seconds, $0 }'
