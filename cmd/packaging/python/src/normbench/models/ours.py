# SPDX-License-Identifier: Apache-2.0
"""Our fused kernels as a module of PyTorch: x (..., width) on a CPU, gamma and beta in f32; mean and rstd of each row are kept for the
backward pass."""

import math

import torch

from . import bound
from .classes import Norm, Refused

NAMES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}


def _address(tensor):
    return None if tensor is None else tensor.data_ptr()


def _run(kernel, call, threads):
    n_bytes = bound.scratch_bytes(kernel, call)
    scratch = torch.empty(n_bytes + 64, dtype=torch.uint8) if n_bytes else None
    if n_bytes:
        call.scratch = -(-scratch.data_ptr() // 64) * 64
    bound.run(kernel, call, threads)


class _Normalize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, module):
        x, y, call = x.contiguous(), torch.empty(x.shape, dtype=x.dtype), module.call(x)
        rows = torch.empty(2, call.rows)
        call.x, call.gamma, call.beta, call.y = map(_address, (x, gamma, beta, y))
        call.mean, call.rstd = _address(rows[0]) if beta is not None else None, _address(rows[1])
        _run(module.kernel(x, bound.FORWARD), call, module.threads)
        ctx.save_for_backward(x, gamma, rows)
        ctx.module = module
        return y

    @staticmethod
    def backward(ctx, dy):
        (x, gamma, rows), module = ctx.saved_tensors, ctx.module
        dy, dx, call = dy.contiguous(), torch.empty_like(x), module.call(x)
        dgamma, dbeta = torch.empty(call.cols), torch.empty(call.cols) if module.has_beta else None
        call.x, call.gamma, call.dy, call.dx, call.dgamma, call.dbeta = map(_address, (x, gamma, dy, dx, dgamma, dbeta))
        call.mean, call.rstd = _address(rows[0]) if module.has_beta else None, _address(rows[1])
        _run(module.kernel(x, bound.BACKWARD), call, module.threads)
        return dx, dgamma, dbeta, None


class BoundNorm(Norm):
    """layernorm, rmsnorm or prmsnorm by kernels: the fast ones where there are, else those of two passes."""

    def __init__(self, arm, width, affine):
        if arm.device != "cpu" or arm.norm not in ("layernorm", "rmsnorm", "prmsnorm"):
            raise Refused(f"{arm.text}: our kernels are bound for LayerNorm, RMSNorm and pRMSNorm on a CPU: take another style")
        self.has_beta = arm.norm == "layernorm"
        super().__init__(width, arm.eps, "frozen" if affine == "none" else affine)
        self.op, self.path, self.threads = arm.norm, arm.kernels, arm.threads
        self.seen = max(1, math.ceil(arm.partial * width - 1e-9)) if arm.norm == "prmsnorm" else width
        for direction in (bound.FORWARD, bound.BACKWARD):
            self._find("f32", direction)

    def _find(self, dtype, direction):
        try:
            return bound.find(self.path, self.op, direction, dtype)
        except bound.Unbound as error:
            raise Refused(str(error)) from None

    def kernel(self, x, direction):
        return self._find(NAMES[x.dtype], direction)

    def call(self, x):
        cols = x.shape[-1]
        return bound.call_of(self.op, x.numel() // cols, cols, self.eps, self.has_beta, self.seen)

    def forward(self, x):
        return _Normalize.apply(x, self.gamma.float(), None if self.beta is None else self.beta.float(), self)
