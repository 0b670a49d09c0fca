# SPDX-License-Identifier: Apache-2.0
"""Norms in NumPy as an author would write them: both passes, three dtypes, arrays that are returned and arrays that are written to."""

import numpy as np

import normbench


def float_of(bits):
    """bf16 as its bits, uint16, to float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def bits_of(x):
    """float32 to bf16, rounded to nearest even; no NaN comes here."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


@normbench.kernel(op="rmsnorm", dtype="f32")
def rmsnorm(x, gamma, eps, out):
    """RMSNorm in NumPy, into a given array"""
    np.multiply(x, 1 / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + np.float32(eps)), out=out)
    out *= gamma


@normbench.kernel(op="rmsnorm", dtype=["f16", "bf16"])
def rmsnorm_half(x, gamma, eps):
    """RMSNorm of 16 bits, computed in float32"""
    wide = float_of(x) if x.dtype == np.uint16 else x.astype(np.float32)
    y = wide * (1 / np.sqrt(np.mean(wide * wide, axis=1, keepdims=True) + np.float32(eps))) * gamma
    return bits_of(y) if x.dtype == np.uint16 else y.astype(np.float16)


@normbench.kernel(op="layernorm", dtype="f32")
def layernorm(x, weight, bias, eps=1e-5):
    """LayerNorm in NumPy"""
    centred = x - x.mean(axis=1, keepdims=True)
    return centred * (1 / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True) + np.float32(eps))) * weight + bias


@normbench.kernel(op="add_rmsnorm", dtype="f32")
def add_rmsnorm(x, residual, gamma, eps):
    """RMSNorm of a sum, which is returned as well"""
    total = x + residual
    return total * (1 / np.sqrt(np.mean(total * total, axis=1, keepdims=True) + np.float32(eps))) * gamma, total


@normbench.kernel(op="rmsnorm", dtype="f32")
def rmsnorm_backward(dy, x, gamma, rstd):
    """The gradients of RMSNorm"""
    xhat, g = x * rstd, dy * gamma
    return rstd * (g - xhat * np.mean(g * xhat, axis=1, keepdims=True)), np.sum(dy * xhat, axis=0)


@normbench.kernel(op="layernorm", dtype="f32")
def layernorm_backward(dy, x, gamma, mean, rstd, dx, dgamma, dbeta):
    """The gradients of LayerNorm, into given arrays"""
    xhat, g = (x - mean) * rstd, dy * gamma
    dx[...] = rstd * (g - g.mean(axis=1, keepdims=True) - xhat * np.mean(g * xhat, axis=1, keepdims=True))
    np.sum(dy * xhat, axis=0, out=dgamma)
    np.sum(dy, axis=0, out=dbeta)


@normbench.kernel(op="batchnorm", dtype="f32")
def batchnorm(x, gamma, beta, eps, momentum, running_mean, running_var):
    """BatchNorm in training, both layouts"""
    n = x.shape[0] * x.shape[2]
    mean = x.mean(axis=(0, 2))
    centred = x - mean[:, None]
    var = np.mean(centred * centred, axis=(0, 2))
    y = centred * (1 / np.sqrt(var + np.float32(eps)) * gamma)[:, None] + beta[:, None]
    new = np.float32(momentum)
    return y, (1 - new) * running_mean + new * mean, (1 - new) * running_var + new * var * np.float32(n / (n - 1))
