# SPDX-License-Identifier: Apache-2.0
"""tinygrad's norms on the CPU, compiled for each shape, with eps as a tensor."""
# needs: tinygrad==0.14.0 numpy==2.4.6 ml_dtypes==0.6.0

import os

os.environ.setdefault("DEV", "CPU")
os.environ.setdefault("CPU", "1")

import numpy as np  # noqa: E402
from tinygrad import Tensor, dtypes, nn  # noqa: E402

import normbench  # noqa: E402

HALVES = ["f32", "f16"]  # bf16: the C that it writes needs a clang newer than 14


def given(array):
    if array.dtype.name == "bfloat16":
        return Tensor(np.ascontiguousarray(array).view(np.uint16)).bitcast(dtypes.bfloat16)
    return Tensor(np.array(array))


def host(tensor, like):
    if like.dtype.name == "bfloat16":
        return tensor.cast(dtypes.bfloat16).contiguous().bitcast(dtypes.uint16).numpy().view(like.dtype)
    return tensor.numpy()


@normbench.kernel(op="rmsnorm", dtype=HALVES, arrays="ml_dtypes", param="x", cast="before")
def rms_norm(x, weight, eps):
    """tinygrad.nn.RMSNorm"""
    module = nn.RMSNorm(x.shape[-1], eps=Tensor([eps]))
    module.weight = given(weight)
    return host(module(given(x)), x)


@normbench.kernel(op="layernorm", dtype=HALVES, arrays="ml_dtypes", param="x", cast="before", stats_dtype="x")
def layer_norm(x, weight, bias, eps):
    """tinygrad.nn.LayerNorm, which computes in x's dtype"""
    module = nn.LayerNorm(x.shape[-1], eps=Tensor([eps]).cast(given(x).dtype))
    module.weight, module.bias = given(weight), given(bias)
    return host(module(given(x)), x)
