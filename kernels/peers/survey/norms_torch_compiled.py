# SPDX-License-Identifier: Apache-2.0
"""PyTorch's norms compiled by torch.compile."""
# needs: torch==2.15.0 numpy==2.4.6 transformers==5.23.0
# environment: torch

import torch
import torch.nn.functional as F
from norms_torch import llama

import normbench
from normbench import _kernel

_kernel.registered.clear()  # those of norms_torch.py are that file's
torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 10000
compiled_rms_norm = torch.compile(lambda x, weight, eps: llama(x, weight, eps), dynamic=True)
compiled_layer_norm = torch.compile(lambda x, weight, bias, eps: F.layer_norm(x, x.shape[-1:], weight, bias, eps), dynamic=True)


@normbench.kernel(op="rmsnorm", dtype=["f32", "bf16"], arrays="torch", param="x", cast="before")
def llama_rms_norm(x, weight, eps):
    """transformers' LlamaRMSNorm, compiled"""
    return compiled_rms_norm(x, weight, eps)


@normbench.kernel(op="layernorm", dtype=["f32", "bf16"], arrays="torch", param="x", variance="welford")
def layer_norm(x, weight, bias, eps):
    """torch.nn.functional.layer_norm, compiled"""
    return compiled_layer_norm(x, weight, bias, eps)
