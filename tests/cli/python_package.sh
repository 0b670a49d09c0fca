#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python package: its worker against a harness of the test's own, what it gives to tests, and its form.
. tests/support/cli.sh
. tests/support/python.sh
export XDG_CACHE_HOME=$WORK
for test in tests/python/test_*.py; do
    "$python" -B -W ignore "$test" >"$WORK/log" 2>&1 || bad "$test: $(tail -n 40 "$WORK/log")"
done
# Python 3.9 is the oldest that is promised: nothing newer in the language.
"$python" -B - cmd/packaging/python/src/normbench/*.py cmd/packaging/python/src/normbench/models/*.py <<'PY' || bad "not Python 3.9"
import ast, sys
for path in sys.argv[1:]:
    ast.parse(open(path).read(), path, feature_version=(3, 9))
PY
if command -v ruff >/dev/null; then
    ruff check --quiet --config cmd/packaging/python/pyproject.toml cmd/packaging tests/python || bad "ruff"
fi
exit "$failed"
