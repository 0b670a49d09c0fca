# SPDX-License-Identifier: Apache-2.0
"""MLX's fast norms, which on a CPU are composed of elementary operations, with y rounded to x's dtype before the weight."""
# needs: mlx[cpu]==0.32.4 numpy==2.4.6 ml_dtypes==0.6.0

import mlx.core as mx
import numpy as np

import normbench

mx.set_default_device(mx.cpu)
ALL = ["f32", "f16", "bf16"]


def given(array):
    if array.dtype.name == "bfloat16":
        return mx.array(np.ascontiguousarray(array).view(np.uint16)).view(mx.bfloat16)
    return mx.array(np.ascontiguousarray(array))


def host(array, like):
    if like.dtype.name == "bfloat16":
        return np.array(array.view(mx.uint16)).view(like.dtype)
    return np.array(array)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="ml_dtypes", param="x", cast="before")
def rms_norm(x, weight, eps):
    """mlx.core.fast.rms_norm"""
    return host(mx.fast.rms_norm(given(x), given(weight), eps), x)


@normbench.kernel(op="layernorm", dtype=ALL, arrays="ml_dtypes", param="x", cast="before")
def layer_norm(x, weight, bias, eps):
    """mlx.core.fast.layer_norm"""
    return host(mx.fast.layer_norm(given(x), given(weight), given(bias), eps), x)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="ml_dtypes", param="x")
def rms_norm_gradient(dy, x, weight, eps):
    """the gradients of mlx.core.fast.rms_norm, with its forward pass"""
    dx, dgamma = mx.vjp(lambda x, weight: mx.fast.rms_norm(x, weight, eps), [given(x), given(weight)], [given(dy)])[1]
    return host(dx, x), np.array(dgamma.astype(mx.float32))


@normbench.kernel(op="layernorm", dtype=ALL, arrays="ml_dtypes", param="x", returns=["dx", "dgamma", "dbeta"], affine="gamma_beta")
def layer_norm_gradient(dy, x, weight, eps):
    """the gradients of mlx.core.fast.layer_norm, with its forward pass"""
    inputs = [given(x), given(weight), mx.zeros_like(given(weight))]
    dx, dgamma, dbeta = mx.vjp(lambda x, weight, bias: mx.fast.layer_norm(x, weight, bias, eps), inputs, [given(dy)])[1]
    return host(dx, x), np.array(dgamma.astype(mx.float32)), np.array(dbeta.astype(mx.float32))
