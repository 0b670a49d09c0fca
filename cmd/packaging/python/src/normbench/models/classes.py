# SPDX-License-Identifier: Apache-2.0
"""The normalizations as their sources print them, operation by operation: in eager PyTorch each line is a kernel launch or more.

x is (..., width), the statistics are of the last axis; BatchNorm's are of a feature over the rows. gamma and beta are (width,), or None
where the model has gains of its own."""

import importlib.util
import math
import shutil

import torch
from torch import nn

from .worker import Skipped


class Refused(Skipped):
    """What an arm asks for and cannot be had, in one sentence."""


def _constant(shape, value, affine):
    return None if affine == "none" else nn.Parameter(torch.full(shape, value), requires_grad=affine == "learned")


class Norm(nn.Module):
    """What the classes share: eps, gamma, and beta where the kind has one by custom. affine: learned, frozen (1 and 0) or none."""

    has_beta = False

    def __init__(self, width, eps, affine="learned"):
        super().__init__()
        self.eps = eps
        self.gamma = _constant((width,), 1.0, affine)
        self.beta = _constant((width,), 0.0, affine) if self.has_beta else None

    def weighted(self, x):
        if self.gamma is None:
            return x
        return self.gamma * x if self.beta is None else self.gamma * x + self.beta


class LayerNorm(Norm):
    """Ba et al. 2016 as tutorials print it, in x's dtype."""

    has_beta = True

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, keepdim=True, unbiased=False)
        return self.weighted((x - mean) / torch.sqrt(variance + self.eps))


class DebertaLayerNorm(Norm):
    """The form of DeBERTa's class: statistics and quotient in f32, cast back before gamma and beta."""

    has_beta = True

    def forward(self, x):
        wide = x.float()
        centred = wide - wide.mean(-1, keepdim=True)
        variance = centred.pow(2).mean(-1, keepdim=True)
        return self.weighted((centred / torch.sqrt(variance + self.eps)).to(x.dtype))


class RMSNorm(Norm):
    """MiniMind's class (as Llama's): in f32, cast back before the weight."""

    def forward(self, x):
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weighted(scaled.type_as(x))


class PartialRMSNorm(Norm):
    """pRMSNorm as the paper's PyTorch class has it: the norm of the first share of the elements, eps beside the root."""

    def __init__(self, width, eps, affine="learned", partial=0.0625):
        super().__init__(width, eps, affine)
        self.seen = max(1, math.ceil(partial * width - 1e-9))

    def forward(self, x):
        part, _ = torch.split(x, [self.seen, x.shape[-1] - self.seen], dim=-1)
        root_mean_square = part.norm(2, dim=-1, keepdim=True) * self.seen**-0.5
        return self.weighted(x / (root_mean_square + self.eps))


class Centre(Norm):
    """Re-centring alone: half of a LayerNorm."""

    def forward(self, x):
        return self.weighted(x - x.mean(dim=-1, keepdim=True))


class Scale(Norm):
    """Re-scaling alone: by the standard deviation, the mean kept."""

    def forward(self, x):
        variance = x.var(dim=-1, keepdim=True, unbiased=False)
        return self.weighted(x / torch.sqrt(variance + self.eps))


class Rows:
    """Which rows of a batch of sequences BatchNorm takes together. positions: above 0, those of one position; present: (batch, sequence),
    1 where a token is real, set by the model before each pass; None: all are."""

    def __init__(self, positions=0):
        self.positions, self.present = positions, None


class BatchNorm(Norm):
    """Ioffe & Szegedy 2015 written out, over the rows of x (batch, sequence, width); running statistics as PyTorch moves them."""

    has_beta = True
    momentum = 0.1

    def __init__(self, width, eps, affine="learned", rows=None):
        super().__init__(width, eps, affine)
        self.rows = rows or Rows()
        shape = (self.rows.positions, width) if self.rows.positions else (width,)
        self.register_buffer("running_mean", torch.zeros(shape))
        self.register_buffer("running_variance", torch.ones(shape))
        if self.rows.positions and affine != "none":
            self.gamma = _constant(shape, 1.0, affine)
            self.beta = _constant(shape, 0.0, affine)

    def forward(self, x):
        if not self.training:
            return self._scaled(x, self.running_mean, self.running_variance)
        axes = (0,) if self.rows.positions else tuple(range(x.dim() - 1))
        present = self.rows.present
        if present is None:
            mean, variance = x.mean(axes), x.var(axes, unbiased=False)
            count = x.numel() // mean.numel()
        else:
            seen = present[..., None]
            count = seen.sum(axes)
            mean = (x * seen).sum(axes) / count
            variance = ((x - mean).pow(2) * seen).sum(axes) / count
        self._move(mean.detach(), variance.detach(), count)
        return self._scaled(x, mean, variance)

    def _scaled(self, x, mean, variance):
        y = self.weighted((x - mean) / torch.sqrt(variance + self.eps))
        return y if self.rows.present is None else y * self.rows.present[..., None]

    def _move(self, mean, variance, count):
        unbiased = variance * count / (count - 1)
        self.running_mean.lerp_(mean, self.momentum)
        self.running_variance.lerp_(unbiased, self.momentum)


class OwnBatchNorm(nn.BatchNorm1d):
    """PyTorch's, of x (..., width)."""

    def forward(self, x):
        return super().forward(x.flatten(0, -2)).view_as(x)


PRINTED = {"layernorm": LayerNorm, "rmsnorm": RMSNorm, "prmsnorm": PartialRMSNorm, "batchnorm": BatchNorm, "centre": Centre, "scale": Scale}
OWN = {"layernorm": nn.LayerNorm, "rmsnorm": getattr(nn, "RMSNorm", None), "batchnorm": OwnBatchNorm}


def _own(arm, width, affine, rows):
    """PyTorch's own module."""
    own = OWN.get(arm.norm)
    if own is None or rows and (rows.positions or arm.padding == "masked"):
        raise Refused(f"PyTorch {torch.__version__} has no module for {arm.text}: take it as printed")
    names = {"affine": affine != "none"} if arm.norm == "batchnorm" else {"elementwise_affine": affine != "none"}
    module = own(width, eps=arm.eps, **names)
    for parameter in module.parameters():
        parameter.requires_grad_(affine == "learned")
    return module


def _printed(arm, width, affine, rows):
    if arm.norm == "prmsnorm":
        return PartialRMSNorm(width, arm.eps, affine, arm.partial)
    if arm.norm == "batchnorm":
        return BatchNorm(width, arm.eps, affine, rows)
    return PRINTED[arm.norm](width, arm.eps, affine)


def _compiled(arm, width, affine, rows):
    """The printed class through torch.compile; every shape may be compiled anew, and none falls back to eager unseen."""
    if arm.device == "cpu" and not any(map(shutil.which, ("g++", "clang++", "c++"))):
        raise Refused("torch.compile needs a C++ compiler on a CPU, and PATH has none: apt install g++")
    if arm.device != "cpu" and not importlib.util.find_spec("triton"):
        raise Refused("torch.compile needs Triton on a GPU: pip install triton")
    config = importlib.import_module("torch._dynamo").config
    for name, value in (("recompile_limit", 256), ("cache_size_limit", 256), ("fail_on_recompile_limit_hit", True)):
        if hasattr(config, name):  # by the version of PyTorch
            setattr(config, name, value)
    module = _printed(arm, width, affine, rows)
    module.compile()
    return module


def _ours(arm, width, affine, rows):
    from .ours import BoundNorm

    return BoundNorm(arm, width, affine)


def _deberta(arm, width, affine, rows):
    if arm.norm != "layernorm":
        raise Refused(f"{arm.text}: DeBERTa's form is one of LayerNorm: take another style")
    return DebertaLayerNorm(width, arm.eps, affine)


STYLES = {"printed": _printed, "nn": _own, "compiled": _compiled, "ours": _ours, "deberta": _deberta}


def norm_of(arm, width, rows=None, affine=None):
    """The module that an arm asks for; the identity where it has no norm. affine: in place of the arm's."""
    if arm.norm == "none":
        return nn.Identity()
    return STYLES[arm.style](arm, width, affine or arm.affine, rows)
