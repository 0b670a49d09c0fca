# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own norms."""

import torch
import torch.nn.functional as F

import normbench


@normbench.kernel(op="rmsnorm", dtype=["f32", "bf16"], arrays="torch", param="x")
def rms_norm(x, weight=None, eps=1e-5):
    """F.rms_norm"""
    return F.rms_norm(x, x.shape[-1:], weight, eps)


@normbench.kernel(op="layernorm", dtype=["f32", "bf16"], arrays="torch", param="x")
def layer_norm(x, weight, bias, eps):
    """F.layer_norm"""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


@normbench.kernel(op="layernorm", dtype="f32", arrays="torch")
def layer_norm_backward(dy, x, gamma, mean, rstd):
    """The gradients of F.layer_norm"""
    return torch.ops.aten.native_layer_norm_backward(dy, x, x.shape[-1:], mean, rstd, gamma, torch.zeros_like(gamma), [True] * 3)
