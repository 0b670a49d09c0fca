# SPDX-License-Identifier: Apache-2.0
"""The norms of transformers' modules, which they compose of PyTorch's elementary operations. Parameters have x's dtype."""
# needs: torch==2.15.0 numpy==2.4.6 transformers==5.23.0
# environment: torch

import torch
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

import normbench

ALL = ["f32", "f16", "bf16"]
torch.set_grad_enabled(False)


class Given:
    """What a module's forward pass looks up in the module."""

    _norm = GemmaRMSNorm._norm

    def __init__(self, weight, eps):
        self.weight = weight
        self.eps = self.variance_epsilon = eps


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="torch", param="x", cast="before", style="composed")
def llama_rms_norm(x, weight, eps):
    """transformers' LlamaRMSNorm"""
    return LlamaRMSNorm.forward(Given(weight, eps), x)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="torch", param="x", weight_offset=1, style="composed")
def gemma_rms_norm(x, weight, eps):
    """transformers' GemmaRMSNorm"""
    return GemmaRMSNorm.forward(Given(weight, eps), x)
