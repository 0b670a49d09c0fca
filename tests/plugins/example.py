# SPDX-License-Identifier: Apache-2.0
"""A complete kernel in Python: RMSNorm of f32 rows. Tried with
normbench try example.py
"""

import numpy as np

import normbench


@normbench.kernel(op="rmsnorm", dtype="f32")
def example(x, gamma=None, eps=1e-5):
    """RMSNorm in NumPy"""
    rstd = 1 / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + np.float32(eps))
    return x * rstd if gamma is None else x * rstd * gamma
