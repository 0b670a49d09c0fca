# SPDX-License-Identifier: Apache-2.0
"""A complete kernel in Python: RMSNorm of f32 rows. Tried with
normbench try example.py
"""

import numpy as np

import normbench


@normbench.kernel(op="rmsnorm", dtype="f32")
def example(x, gamma=None, eps=1e-5):
    """RMSNorm in NumPy"""
    # Squares in double precision: no row is too large or too small.
    rstd = 1 / np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=1, keepdims=True) + eps)
    y = x * rstd if gamma is None else x * rstd * gamma
    return y.astype(np.float32)
