# SPDX-License-Identifier: Apache-2.0
"""Norms as a user writes them in NumPy, which has none of its own: the yardstick of the survey."""
# needs: numpy==2.4.6 ml_dtypes==0.6.0

import numpy as np

import normbench


def wide(x):
    return x if x.dtype == np.float32 else x.astype(np.float32)


@normbench.kernel(op="rmsnorm", dtype=["f32", "f16", "bf16"], arrays="ml_dtypes", style="composed")
def rmsnorm(x, weight, eps):
    """x / sqrt(mean(x * x) + eps) * weight, in float32"""
    f = wide(x)
    y = f * (1 / np.sqrt(np.mean(f * f, axis=1, keepdims=True) + np.float32(eps))) * weight
    return y.astype(x.dtype)


@normbench.kernel(op="layernorm", dtype=["f32", "f16", "bf16"], arrays="ml_dtypes", style="composed")
def layernorm(x, weight, bias, eps):
    """(x - mean) / sqrt(var + eps) * weight + bias, in float32"""
    f = wide(x)
    y = (f - f.mean(axis=1, keepdims=True)) * (1 / np.sqrt(f.var(axis=1, keepdims=True) + np.float32(eps))) * weight + bias
    return y.astype(x.dtype)
