# SPDX-License-Identifier: Apache-2.0
# The Python that kernels are run in, $python: NORMBENCH_PYTHON, or the first of PATH's and Debian's that has NumPy, else one without.
python=${NORMBENCH_PYTHON:-}
for each in python3 /usr/bin/python3; do
    [ -z "$python" ] && "$each" -c 'import numpy' 2>/dev/null && python=$each
done
python=$("${python:-python3}" -c "import sys; print(sys.executable)")
export NORMBENCH_PYTHON=$python PYTHONDONTWRITEBYTECODE=1
has() { "$python" -c "import $1" 2>/dev/null; } # MODULE
