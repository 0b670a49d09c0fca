# SPDX-License-Identifier: Apache-2.0
"""PyTorch's norms as they are called, their gradients by autograd, and the forms of RMSNorm that models compose of elementary operations.
Parameters have x's dtype, as in a model that was cast to it; BatchNorm's are f32, as under autocast."""
# needs: torch==2.15.0 numpy==2.4.6 transformers==5.23.0

import torch
import torch.nn.functional as F

import normbench

ALL = ["f32", "f16", "bf16"]
torch.set_grad_enabled(False)


def gradients(forward, dy, *inputs):
    """dx, then those of the parameters, as float32 for the oracle; forward(*inputs) is run for them."""
    inputs = [each.detach().requires_grad_() for each in inputs]
    with torch.enable_grad():
        dx, *others = torch.autograd.grad(forward(*inputs), inputs, dy)
    return dx, *(each.float() for each in others)


def composed(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def llama(x, weight, eps):
    f = x.float()
    return weight * (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


def minimind(x, weight, eps):
    f = x.float()
    return (weight * (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + eps))).type_as(x)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="torch", param="x", style="composed")
def rms_norm(x, weight, eps):
    """torch.nn.functional.rms_norm, which a CPU computes by elementary operations, in float32"""
    return F.rms_norm(x, x.shape[-1:], weight, eps)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="torch", param="x", style="composed")
def rms_norm_gradient(dy, x, weight, eps):
    """the gradients of torch.nn.functional.rms_norm, with its forward pass"""
    return gradients(lambda x, weight: F.rms_norm(x, x.shape[-1:], weight, eps), dy, x, weight)


@normbench.kernel(op="layernorm", dtype=ALL, arrays="torch", param="x", variance="welford")
def layer_norm(x, weight, bias, eps):
    """torch.nn.functional.layer_norm"""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


@normbench.kernel(
    op="layernorm", dtype=ALL, arrays="torch", param="x", returns=["dx", "dgamma", "dbeta"], affine="gamma_beta", variance="welford"
)
def layer_norm_gradient(dy, x, weight, eps):
    """the gradients of torch.nn.functional.layer_norm, with its forward pass"""
    bias = torch.zeros_like(weight)
    return gradients(lambda x, weight, bias: F.layer_norm(x, x.shape[-1:], weight, bias, eps), dy, x, weight, bias)


@normbench.kernel(op="batchnorm", dtype=ALL, arrays="torch", mode=["training", "inference"], strided=False)
def batch_norm(x, weight, bias, eps, momentum, training, running_mean, running_var):
    """torch.nn.functional.batch_norm of packed rows; others take another path there, with other roundings"""
    mean, var = running_mean.clone(), running_var.clone()
    return F.batch_norm(x, mean, var, weight, bias, bool(training), momentum, eps), mean, var


@normbench.kernel(op="batchnorm", dtype=ALL, arrays="torch", returns=["dx", "dgamma", "dbeta"], affine="gamma_beta", strided=False)
def batch_norm_gradient(dy, x, weight, eps):
    """the gradients of torch.nn.functional.batch_norm in training, with its forward pass"""
    bias = torch.zeros_like(weight)
    return gradients(lambda x, weight, bias: F.batch_norm(x, None, None, weight, bias, True, 0.1, eps), dy, x, weight, bias)


@normbench.kernel(op="l2norm", dtype=ALL, arrays="torch", eps_place="clamp", style="composed", stats_dtype="x")
def normalize(x, eps):
    """torch.nn.functional.normalize"""
    return F.normalize(x, dim=-1, eps=eps)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="torch", param="x", style="composed", stats_dtype="x")
def composed_rms_norm(x, weight, eps):
    """x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight, without a cast"""
    return composed(x, weight, eps)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="torch", param="x", cast="before", style="composed")
def llama_rms_norm(x, weight, eps):
    """the operations of transformers' LlamaRMSNorm: in float32, rounded to x's dtype, then the weight"""
    return llama(x, weight, eps)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="torch", param="x", style="composed")
def minimind_rms_norm(x, weight, eps):
    """the operations of MiniMind's RMSNorm: the weight in float32 too, then rounded to x's dtype"""
    return minimind(x, weight, eps)
