# SPDX-License-Identifier: Apache-2.0
"""PyTorch's norms: its own functions with their gradients, and transformers' modules, composed of elementary operations. Parameters have x's
dtype, as in a model that was cast to it."""
# needs: torch==2.15.0 numpy==2.4.6 transformers==5.23.0

import types

import torch
import torch.nn.functional as F

import normbench

ALL = ["f32", "f16", "bf16"]
torch.set_grad_enabled(False)


def gradients(function, dy, *inputs):
    """dx and the gradients of the parameters, which the harness wants in float32."""
    with torch.enable_grad():
        inputs = [each.detach().requires_grad_() for each in inputs]
        dx, *others = torch.autograd.grad(function(*inputs), inputs, dy)
    return (dx, *(each.float() for each in others))


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="torch", param="x")
def rms_norm(x, weight=None, eps=1e-5):
    """torch.nn.functional.rms_norm"""
    return F.rms_norm(x, x.shape[-1:], weight, eps)


@normbench.kernel(op="layernorm", dtype=ALL, arrays="torch", param="x", variance="welford")
def layer_norm(x, weight, bias, eps):
    """torch.nn.functional.layer_norm"""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


@normbench.kernel(op="l2norm", dtype=ALL, arrays="torch", eps_place="clamp", style="composed")
def normalize(x, eps):
    """torch.nn.functional.normalize"""
    return F.normalize(x, dim=-1, eps=eps)


@normbench.kernel(op="batchnorm", dtype=ALL, arrays="torch", mode=["training", "inference"], variance="welford")
def batch_norm(x, weight, bias, eps, momentum, training, running_mean, running_var):
    """torch.nn.functional.batch_norm"""
    mean, var = running_mean.clone(), running_var.clone()
    y = F.batch_norm(x.unsqueeze(2), mean, var, weight, bias, training, momentum, eps)
    return y.squeeze(2), mean, var


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="torch", param="x")
def rms_norm_gradient(dy, x, weight, eps):
    """the gradients of torch.nn.functional.rms_norm, with its forward pass"""
    return gradients(lambda x, weight: F.rms_norm(x, x.shape[-1:], weight, eps), dy, x, weight)


@normbench.kernel(op="layernorm", dtype=ALL, arrays="torch", param="x", returns=["dx", "dgamma", "dbeta"], variance="welford", affine="gamma_beta")
def layer_norm_gradient(dy, x, weight, eps):
    """the gradients of torch.nn.functional.layer_norm, with its forward pass"""
    bias = torch.zeros_like(weight)
    return gradients(lambda x, weight, bias: F.layer_norm(x, x.shape[-1:], weight, bias, eps), dy, x, weight, bias)


def of_transformers(path, name, **eps):
    """The forward pass of one of transformers' modules, with the harness's weight."""
    module = __import__(f"transformers.models.{path}", fromlist=[name])
    forward = getattr(module, name).forward
    helpers = {key: value for key, value in vars(getattr(module, name)).items() if key == "_norm"}

    def call(x, weight, eps_value):
        own = types.SimpleNamespace(weight=weight, **{key: eps_value for key in eps})
        for key, value in helpers.items():
            setattr(own, key, types.MethodType(value, own))
        return forward(own, x)

    return call


llama = of_transformers("llama.modeling_llama", "LlamaRMSNorm", variance_epsilon=None)
gemma = of_transformers("gemma.modeling_gemma", "GemmaRMSNorm", eps=None)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="torch", param="x", cast="before", style="composed")
def llama_rms_norm(x, weight, eps):
    """transformers' LlamaRMSNorm"""
    return llama(x, weight, eps)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="torch", param="x", weight_offset=1, style="composed")
def gemma_rms_norm(x, weight, eps):
    """transformers' GemmaRMSNorm"""
    return gemma(x, weight, eps)
