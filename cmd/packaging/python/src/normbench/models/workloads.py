# SPDX-License-Identifier: Apache-2.0
"""What is trained: the sizes of the sources, and what an arm may ask of each. Where an arm has a 0 the workload's own number holds.

tiny-transformer     MiniMind's layers at a width of 64
minimind2-small      MiniMind2-Small (2025-04-26): 8 layers of 512, 8 query heads on 2, SwiGLU of 1408, vocabulary 6400; 32 x 512 tokens
transformer-base     Vaswani et al. 2017 as in Zhang & Sennrich 2019, table 4: post-norm, vocabulary 32000; 390 x 64 pairs of tokens
llama-layer          4 layers of Llama-3-8B's sizes: 4096, 32 query heads on 8, SwiGLU of 14336; 2 x 2048 tokens
rnnsearch            tables 2 and 3: GRU of 1024, embedding 512, vocabulary 32000; batch 80 x 80 words
attentive-reader     table 6: bidirectional LSTMs of 240; batch 64, documents of 780 words, questions of 13
order-embedding      table 8: GRU of 1024 over 10 words of 300, image features of 4096; batch 128
norm                 norms alone: 16 on 4096 rows of 512
convpool, tiny-convpool    table 10: ConvPool-CNN-C, 96 and 192 channels on 32 x 32; batch 100. Tiny: 8 and 16 on 16 x 16
"""

import dataclasses
import types

import torch

from . import convpool, draws, recurrent, transformer
from .classes import Refused, norm_of

SHAPE = dict(kv_heads=0, swiglu=True, decoder=False, theta=1e6, deviation=0.02, beta2=0.999, adam_eps=1e-8, decay=0.01)
MINIMIND = dict(SHAPE, heads=8, kv_heads=2, ffn=1408, vocabulary=6400)
OF_2017 = dict(swiglu=False, decoder=True, theta=0, deviation=0, beta2=0.98, adam_eps=1e-9, decay=0)
BASE = {**SHAPE, "heads": 8, "kv_heads": 8, "ffn": 2048, "vocabulary": 32000, **OF_2017}
TINY = dict(SHAPE, heads=4, kv_heads=2, ffn=176, vocabulary=256)
LLAMA = dict(SHAPE, heads=32, kv_heads=8, ffn=14336, vocabulary=0, theta=5e5)


@dataclasses.dataclass(frozen=True)
class Workload:
    family: type
    usual: dict  # of an arm: layers, batch, sequence, hidden, rate, eps, partial
    shape: dict = dataclasses.field(default_factory=dict)


def _usual(layers, batch, sequence, hidden, rate, eps, partial=0.0625):
    return dict(layers=layers, batch=batch, sequence=sequence, hidden=hidden, rate=rate, eps=eps, partial=partial)


WORKLOADS = {
    "tiny-transformer": Workload(transformer.Transformer, _usual(4, 4, 64, 64, 1e-3, 1e-5), TINY),
    "minimind2-small": Workload(transformer.Transformer, _usual(8, 32, 512, 512, 5e-4, 1e-5), MINIMIND),
    "transformer-base": Workload(transformer.Transformer, _usual(6, 390, 64, 512, 1e-4, 1e-8), BASE),
    "llama-layer": Workload(transformer.Layers, _usual(4, 2, 2048, 4096, 1e-4, 1e-5), LLAMA),
    "norm": Workload(transformer.Norms, _usual(16, 1, 4096, 512, 1e-4, 1e-5)),
    "rnnsearch": Workload(recurrent.RNNSearch, _usual(1, 80, 80, 1024, 1e-4, 1e-5)),
    "attentive-reader": Workload(recurrent.AttentiveReader, _usual(1, 64, 780, 240, 8e-5, 1e-5)),
    "order-embedding": Workload(recurrent.OrderEmbedding, _usual(1, 128, 10, 1024, 1e-3, 1e-5)),
    "convpool": Workload(convpool.ConvPool, _usual(9, 100, 32, 96, 3e-4, 1e-6, 0.125)),
    "tiny-convpool": Workload(convpool.ConvPool, _usual(9, 8, 16, 8, 3e-3, 1e-6, 0.125)),
}


@dataclasses.dataclass
class Arm:
    """What differs between runs that are compared; the names are those of a request."""

    arm: str = ""
    norm: str = "none"
    style: str = "printed"
    affine: str = "learned"
    place: str = "pre"
    residual: bool = True
    causal: bool = True
    padding: str = "unpadded"
    by_position: bool = False
    dtype: str = "f32"
    layers: int = 0
    batch: int = 0
    sequence: int = 0
    hidden: int = 0
    rate: float = 0
    clip: float = 1
    eps: float = 0
    partial: float = 0
    seed: int = 1  # from here on of the whole request
    device: str = "cpu"
    threads: int = 1
    kernels: str = ""

    @property
    def text(self):
        return self.arm or f"{self.norm} {self.style}"


CHOICES = {
    "norm": ("none", "layernorm", "rmsnorm", "prmsnorm", "batchnorm", "centre", "scale"),
    "style": ("printed", "nn", "compiled", "ours", "deberta"),
    "affine": ("learned", "frozen"),
    "place": ("pre", "post"),
    "padding": ("unpadded", "padded", "masked"),
    "dtype": ("f32", "f16", "bf16"),
}


def arm_of(fields, **common):
    """An Arm of a request's object; a key or value that is not known is Refused."""
    names = {field.name: field for field in dataclasses.fields(Arm)}
    for key, value in fields.items():
        if key not in names:
            raise Refused(f"an arm has no key '{key}': {', '.join(names)}")
        if key in CHOICES and value not in CHOICES[key]:
            raise Refused(f"{key}={value!r}: one of {', '.join(CHOICES[key])}")
        if key not in CHOICES and key != "arm" and (not isinstance(value, (int, float)) or value < 0):
            raise Refused(f"{key}={value!r}: a number of 0 or more")
    return Arm(**{**fields, **common})


def _padding_refused(arm, workload):
    in_sets = arm.by_position or arm.padding == "masked"
    padded = in_sets or arm.padding != "unpadded"
    if padded and (workload.family is not transformer.Transformer or workload.shape["decoder"]):
        return "padding and statistics by position are of transformers without a decoder"
    if in_sets and arm.norm != "batchnorm":
        return "masked and by_position are said of BatchNorm's statistics"
    if padded and not arm.causal:
        return "padded sequences need a causal mask"
    return "padded sequences need a batch of 2 or more" if padded and arm.batch < 2 else None


def _refused(arm, workload):
    """None, or why the workload cannot do what the arm asks for."""
    shape, recurs = workload.shape, workload.family.__module__ == recurrent.__name__
    if recurs and arm.norm == "batchnorm":
        return "BatchNorm would need running statistics of each step of time: take another norm"
    if recurs and (arm.hidden % 16 or arm.sequence < 4):
        return "hidden must be a multiple of 16, a sequence 4 long or more"
    if workload.family is transformer.Norms:
        return "it needs a norm" if arm.norm == "none" else None
    if not shape and (arm.layers != workload.usual["layers"] or arm.place != "pre" or not arm.residual):
        return "layers, place and residual paths are of transformers"
    if workload.family is convpool.ConvPool and (arm.sequence < 8 or arm.sequence % 4):
        return "sequence, the side of an image, must be a multiple of 4 from 8 on"
    if shape and shape["decoder"] and arm.place != "post":
        return "place must be post: its encoder has no norm behind the last layer"
    if shape and arm.hidden % (2 * shape["heads"]):
        return "hidden must be a multiple of twice the heads"
    return _padding_refused(arm, workload)


def complete(arm, name):
    """The arm with the workload's own numbers for its zeros, and the workload."""
    workload = WORKLOADS.get(name)
    if workload is None:
        raise Refused(f"no workload '{name}': {', '.join(WORKLOADS)}")
    arm = dataclasses.replace(arm, **{key: value for key, value in workload.usual.items() if not getattr(arm, key)})
    reason = _refused(arm, workload)
    if reason:
        raise Refused(f"{name}, {arm.text}: {reason}")
    return arm, workload


def shape_of(arm, workload):
    """Where hidden is another, the feed-forward width follows in proportion; where it is less the vocabulary too, so that the head keeps
    its share of a step. Bytes need 256."""
    shape, usual = types.SimpleNamespace(hidden=arm.hidden, **workload.shape), workload.usual["hidden"]
    if arm.hidden != usual:
        shape.ffn = (shape.ffn * arm.hidden // usual + 7) // 8 * 8
    if arm.hidden < usual and shape.vocabulary:
        shape.vocabulary = max(256, shape.vocabulary * arm.hidden // usual)
    return shape


class Make:
    """What a model's constructor takes parameters and norms from. see: shows a tensor to the observer, when there is one."""

    def __init__(self, arm, drawn=None):
        self.arm, self.observer = arm, None
        self.rows = transformer.rows_of(arm)
        self.drawn = drawn  # first values by name and shape, which arms of one seed share; or None

    def matrix(self, name, out, size, deviation=None):
        """Normal, by default as Glorot & Bengio 2010 have it."""
        deviation = deviation or (2 / (out + size)) ** 0.5
        key = (name, out, size, deviation)
        known = self.drawn or {}
        values = known[key].clone() if key in known else draws.matrix(name, (out, size), deviation, self.arm.seed, self.arm.device)
        if self.drawn is not None:
            self.drawn.setdefault(key, values.detach().clone())
        return torch.nn.Parameter(values)

    def vector(self, width, value=0.0):
        return torch.nn.Parameter(torch.full((width,), value))

    def norm(self, width, affine=None):
        return norm_of(self.arm, width, self.rows, affine)

    def see(self, place, tensor, apart=False):
        return tensor if self.observer is None else self.observer(place, tensor, apart)


DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def optimizer_of(model, arm, workload):
    """AdamW with the workload's constants; matrices alone decay. Without any: Adam (Kingma & Ba 2015), as the paper's experiments."""
    wanted = [p for p in model.parameters() if p.requires_grad]
    matrices, vectors = ([p for p in wanted if (p.dim() > 1) == is_matrix] for is_matrix in (True, False))
    decay, shape = workload.shape.get("decay", 0), workload.shape
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0}]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=arm.rate,
        betas=(0.9, shape.get("beta2", 0.999)),
        eps=shape.get("adam_eps", 1e-8),
        fused=True,
    )


def build(arm, workload, drawn=None):
    """The model on its device, with `make`, whose observer sees its tensors, and `casts`: is all of it in the arm's dtype?"""
    make = Make(arm, drawn)
    model = workload.family(make, *([shape_of(arm, workload)] if workload.shape else []))
    model.make, model.casts = make, getattr(model, "casts", False)
    return model.to(arm.device, DTYPES[arm.dtype] if model.casts else None)
