# SPDX-License-Identifier: Apache-2.0
"""Kernels in Python for normbench, and its answers in tests.

    import normbench

    @normbench.kernel(op="rmsnorm", dtype="f32")
    def mine(x, gamma, eps): ...

`normbench try mine.py` says what it is worth; in a test, `assert normbench.check(mine)`, and for arrays
`normbench.assert_close(actual, expected, op="rmsnorm", dtype="bf16")`.
"""

from ._kernel import kernel
from ._program import Error, load, program, run
from ._testing import Report, Tolerance, assert_close, check, tolerance

__all__ = ["Error", "Report", "Tolerance", "assert_close", "check", "kernel", "load", "program", "run", "tolerance"]
