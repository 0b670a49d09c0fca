#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Long, 10 s: functions and kernels of other projects built by clang++ too (foreign_function.sh).
ALL=1 exec bash tests/cli/foreign_function.sh
