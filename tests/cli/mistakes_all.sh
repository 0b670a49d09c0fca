#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Long, 400 s: every mistake and every correct kernel of tests/plugins/mistakes.h, about 30,000 checks (mistakes.sh).
MISTAKES='*' exec bash tests/cli/mistakes.sh
