#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records losses and gradients of small transformers as PyTorch computes them in f64, by its own modules and autograd, into
tests/data/torch_transformer.json. Weights, tokens and targets follow from a formula that tests/train/test_train_torch.c repeats.

    pip install torch
    tests/tools/torch_transformer.py > tests/data/torch_transformer.json
"""
import json
import math
import sys

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

MINIMIND = dict(hidden=16, layers=2, heads=4, kv_heads=2, ffn=24, vocabulary=32, batch=2, sequence=6, swiglu=True,
                qk_norm=False, rope_theta=1e4, eps=1e-5)
BASE = dict(MINIMIND, kv_heads=4, swiglu=False, rope_theta=0)


def formula(name, n):
    """Numbers in [-1, 1] in steps of 1/1001, from the bytes of the name and the position."""
    start = sum(ord(c) for c in name)
    return [((start * 7919 + i * 104729) % 2003 - 1001) / 1001 for i in range(n)]


def parameter(name, *shape):
    v = torch.tensor(formula(name, math.prod(shape))).reshape(shape)
    v = 1 + 0.2 * v if name.endswith("gamma") else 0.1 * v if len(shape) == 1 else 0.4 * v
    return v.to(torch.float32).to(torch.float64).requires_grad_(True)


class Model:
    def __init__(self, shape, norm, place, residual, causal):
        self.__dict__.update(shape)
        self.norm_kind, self.place, self.residual, self.causal = norm, place, residual, causal
        self.width = self.hidden // self.heads
        self.parameters = {}
        self.get("embedding", self.vocabulary, self.hidden)

    def get(self, name, *shape):
        if name not in self.parameters:
            self.parameters[name] = parameter(name, *shape)
        return self.parameters[name]

    def norm(self, name, x):
        width = x.shape[-1]
        if self.norm_kind == "none":
            return x
        gamma = self.get(name + ".gamma", width)
        if self.norm_kind == "rmsnorm":
            return F.rms_norm(x, (width,), gamma, self.eps)
        if self.norm_kind == "layernorm":
            return F.layer_norm(x, (width,), gamma, self.get(name + ".beta", width), self.eps)
        flat = x.reshape(-1, width)
        y = F.batch_norm(flat, None, None, gamma, self.get(name + ".beta", width), training=True, eps=self.eps)
        return y.reshape(x.shape)

    def rotate(self, x):
        if not self.rope_theta:
            return x
        half = self.width // 2
        angle = torch.outer(torch.arange(self.sequence).double(),
                            self.rope_theta ** (-torch.arange(half).double() / half))
        cosine, sine = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
        a, b = x[..., :half], x[..., half:]
        return x * cosine[None, :, None] + torch.cat([-b, a], -1) * sine[None, :, None]

    def attention(self, name, x):
        q = F.linear(x, self.get(name + ".wq", self.hidden, self.hidden))
        k = F.linear(x, self.get(name + ".wk", self.kv_heads * self.width, self.hidden))
        v = F.linear(x, self.get(name + ".wv", self.kv_heads * self.width, self.hidden))
        q, k, v = (t.reshape(self.batch, self.sequence, -1, self.width) for t in (q, k, v))
        if self.qk_norm:
            q, k = self.norm(name + ".q_norm", q), self.norm(name + ".k_norm", k)
        q, k = self.rotate(q), self.rotate(k)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=True)
        y = y.transpose(1, 2).reshape(self.batch, self.sequence, self.hidden)
        return F.linear(y, self.get(name + ".wo", self.hidden, self.hidden))

    def feed_forward(self, name, x):
        up = self.get(name + ".up", self.ffn, self.hidden)
        down = self.get(name + ".down", self.hidden, self.ffn)
        if self.swiglu:
            return F.linear(F.silu(F.linear(x, self.get(name + ".gate", self.ffn, self.hidden))) * F.linear(x, up), down)
        inner = F.relu(F.linear(x, up, self.get(name + ".bias", self.ffn)))
        return F.linear(inner, down, self.get(name + ".bias_down", self.hidden))

    def sublayer(self, norm, function, name, x):
        past = x if self.residual else 0
        if self.place == "pre":
            return past + function(name, self.norm(norm, x))
        return self.norm(norm, past + function(name, x))

    def loss(self, tokens, targets):
        x = F.embedding(tokens, self.parameters["embedding"])
        if not self.rope_theta:
            i, t = torch.arange(self.hidden), torch.arange(self.sequence).double()
            turn = t[:, None] * 10000.0 ** (-(i // 2 * 2).double() / self.hidden)
            x = x * math.sqrt(self.hidden) + torch.where(i % 2 == 0, turn.sin(), turn.cos())
        for i in range(self.layers):
            x = self.sublayer(f"layer{i}.input_layernorm", self.attention, f"layer{i}.attention", x)
            x = self.sublayer(f"layer{i}.post_attention_layernorm", self.feed_forward, f"layer{i}.feed_forward", x)
        if self.place == "pre":
            x = self.norm("norm", x)
        logits = F.linear(x, self.parameters["embedding"])
        return F.cross_entropy(logits.reshape(-1, self.vocabulary), targets.reshape(-1))


def describe(name, gradient):
    """The root of the sum of squares, the sum with weights of the formula, and the first elements."""
    flat = gradient.flatten()
    weights = torch.tensor(formula("probe", flat.numel()))
    return {"name": name, "norm": flat.norm().item(), "probe": (flat * weights).sum().item(), "first": flat[:6].tolist()}


def record(shape_name, shape, norm, place, residual, causal, steps=3):
    model = Model(shape, norm, place, residual, causal)
    n = shape["batch"] * shape["sequence"]
    tokens = torch.tensor([(7 * i + 3) % shape["vocabulary"] for i in range(n)]).reshape(shape["batch"], -1)
    targets = torch.tensor([(5 * i + i * i) % shape["vocabulary"] for i in range(n)]).reshape(shape["batch"], -1)
    loss = model.loss(tokens, targets)
    loss.backward()
    parameters = model.parameters
    case = {"shape": shape_name, "qk_norm": shape["qk_norm"], "norm": norm, "place": place, "residual": residual,
            "causal": causal, "loss": loss.item(),
            "gradients": [describe(name, p.grad) for name, p in parameters.items()]}
    decays = [p for p in parameters.values() if p.dim() > 1]
    others = [p for p in parameters.values() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decays, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
                                  lr=1e-3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model.loss(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters.values(), 0.5)
        optimizer.step()
        losses.append(model.loss(tokens, targets).item())
    case["losses_after_steps"] = losses
    return case


def main():
    cases = []
    for norm in ("rmsnorm", "layernorm", "batchnorm", "none"):
        for place in ("pre", "post"):
            cases.append(record("minimind", MINIMIND, norm, place, True, place == "pre"))
    cases.append(record("minimind", dict(MINIMIND, qk_norm=True), "rmsnorm", "pre", True, True))
    cases.append(record("minimind", dict(MINIMIND, qk_norm=True), "layernorm", "post", False, False))
    cases.append(record("minimind", MINIMIND, "rmsnorm", "pre", False, True))
    cases.append(record("base", BASE, "layernorm", "post", True, False))
    cases.append(record("base", BASE, "rmsnorm", "pre", True, True))
    json.dump({"torch": torch.__version__, "cases": cases}, sys.stdout, indent=1)
    print()


main()
