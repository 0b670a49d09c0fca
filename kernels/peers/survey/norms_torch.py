# SPDX-License-Identifier: Apache-2.0
"""PyTorch's norms as they are called, and transformers' modules, composed of elementary operations. Parameters have x's dtype, as in a
model that was cast to it. Its BatchNorm and gradients are those of the C peer `pytorch`."""
# needs: torch==2.15.0 numpy==2.4.6 transformers==5.23.0

import types

import torch
import torch.nn.functional as F

import normbench

ALL = ["f32", "f16", "bf16"]
torch.set_grad_enabled(False)


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
