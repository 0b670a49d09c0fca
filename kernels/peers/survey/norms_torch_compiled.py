# SPDX-License-Identifier: Apache-2.0
"""The forms of RMSNorm in norms_torch.py compiled by torch.compile, whose backend Inductor writes C++ that g++ compiles. Sizes are variables
of the compiled code (dynamic=True), and so is eps, a tensor. Rows are packed, since other strides are compiled anew. F.layer_norm is not
here: its eps is a number, for each of which it is compiled."""
# needs: torch==2.15.0 numpy==2.4.6 transformers==5.23.0
# environment: torch

import norms_torch as eager
import torch

import normbench
from normbench import _kernel

_kernel.registered.clear()  # those of norms_torch.py are that file's
SOME = ["f32", "bf16"]
torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 10000
compiled_composed, compiled_llama, compiled_minimind = (
    torch.compile(form, dynamic=True) for form in (eager.composed, eager.llama, eager.minimind)
)


@normbench.kernel(op="rmsnorm", dtype=SOME, arrays="torch", param="x", strided=False)
def composed_rms_norm(x, weight, eps):
    """x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight, without a cast, compiled"""
    return compiled_composed(x, weight, torch.tensor(eps))


@normbench.kernel(op="rmsnorm", dtype=SOME, arrays="torch", param="x", cast="before", strided=False)
def llama_rms_norm(x, weight, eps):
    """the operations of transformers' LlamaRMSNorm, compiled"""
    return compiled_llama(x, weight, torch.tensor(eps))


@normbench.kernel(op="rmsnorm", dtype=SOME, arrays="torch", param="x", strided=False)
def minimind_rms_norm(x, weight, eps):
    """the operations of MiniMind's RMSNorm, compiled"""
    return compiled_minimind(x, weight, torch.tensor(eps))
