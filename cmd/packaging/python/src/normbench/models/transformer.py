# SPDX-License-Identifier: Apache-2.0
"""Transformers: MiniMind's (pre-norm, RoPE, SwiGLU, grouped queries, head tied to the embedding), the encoder and decoder of Vaswani et
al. 2017, and layers of Llama's sizes alone. Tokens are the bytes of a text, the byte behind each its target; tensors are (batch,
sequence, hidden).

Places that are observed: "embedding", "layerN.attention.*", "layerN.feed_forward.*" (of a decoder "decoderN.*", with "cross" between
them) with the parts input (what the sublayer works on), output (what it makes of it) and stream (with the path past it), "final" (the
head's input) and "logits"."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from . import data
from .classes import Rows


def _heads(x, n):
    """(batch, heads, sequence, width) of (batch, sequence, heads x width)."""
    return x.unflatten(-1, (n, -1)).transpose(1, 2)


class Rotation(nn.Module):
    """Rotary positions (Su et al. 2021) as Llama has them: halves of a head."""

    def __init__(self, sequence, width, theta):
        super().__init__()
        half = width // 2
        angle = torch.outer(torch.arange(sequence).double(), theta ** (-torch.arange(half).double() / half)).repeat(1, 2)
        self.register_buffer("cosine", angle.cos().float())
        self.register_buffer("sine", angle.sin().float())

    def forward(self, x):
        """x: (batch, heads, sequence, width)."""
        a, b = x.chunk(2, -1)
        return (x * self.cosine + torch.cat((-b, a), -1) * self.sine).type_as(x)


class Attention(nn.Module):
    """softmax(q k^T / sqrt(width)) v, several query heads to one of keys and values (Ainslie et al. 2023)."""

    def __init__(self, make, name, shape, rotation, causal):
        super().__init__()
        self.heads, self.kv_heads, self.causal, self.rotation = shape.heads, shape.kv_heads, causal, rotation
        self.written_out = shape.decoder
        if self.written_out and causal:
            sides = 2 * (make.arm.sequence,)
            self.register_buffer("future", torch.ones(sides, dtype=torch.bool).triu(1))
        width = shape.hidden // shape.heads
        for part, out, size in (
            ("wq", shape.hidden, shape.hidden),
            ("wk", shape.kv_heads * width, shape.hidden),
            ("wv", shape.kv_heads * width, shape.hidden),
            ("wo", shape.hidden, shape.hidden),
        ):
            setattr(self, part, make.matrix(f"{name}.{part}", out, size, shape.deviation))

    def forward(self, x, memory=None):
        """memory: what keys and values are made of, in place of x."""
        source = x if memory is None else memory
        q, k = _heads(F.linear(x, self.wq), self.heads), _heads(F.linear(source, self.wk), self.kv_heads)
        v = _heads(F.linear(source, self.wv), self.kv_heads)
        if self.rotation is not None:
            q, k = self.rotation(q), self.rotation(k)
        if self.kv_heads != self.heads:
            k, v = (part.repeat_interleave(self.heads // self.kv_heads, 1) for part in (k, v))
        mixed = self._mixed_of_2019(q, k, v) if self.written_out else F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return F.linear(mixed.transpose(1, 2).flatten(-2), self.wo)

    def _mixed_of_2019(self, q, k, v):
        """Operation by operation, as frameworks without a fused attention ran it."""
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        if self.causal:
            scores = scores.masked_fill(self.future, -math.inf)
        return scores.softmax(-1) @ v


class FeedForward(nn.Module):
    """down(silu(gate x) * up x), or down(relu(up x + bias)) + bias."""

    def __init__(self, make, name, shape):
        super().__init__()
        hidden, ffn = shape.hidden, shape.ffn
        self.gate = make.matrix(f"{name}.gate", ffn, hidden, shape.deviation) if shape.swiglu else None
        self.up = make.matrix(f"{name}.up", ffn, hidden, shape.deviation)
        self.down = make.matrix(f"{name}.down", hidden, ffn, shape.deviation)
        self.bias, self.bias_down = (None, None) if shape.swiglu else (make.vector(ffn), make.vector(hidden))

    def forward(self, x):
        up = F.linear(x, self.up, self.bias)
        inner = F.relu(up) if self.gate is None else F.silu(F.linear(x, self.gate)) * up
        return F.linear(inner, self.down, self.bias_down)


class Sublayer(nn.Module):
    """pre-norm (Xiong et al. 2020): x + f(norm(x)); post-norm (Vaswani et al. 2017): norm(x + f(x)); without "x +" where the model has no
    residual paths."""

    def __init__(self, make, place, width, inside):
        super().__init__()
        self.place, self.inside, self.see = place, inside, make.see
        self.pre, self.residual = make.arm.place == "pre", make.arm.residual
        self.norm = make.norm(width)

    def forward(self, x, *memory):
        taken = self.see(f"{self.place}.input", self.norm(x) if self.pre else x, apart=True)
        out = self.see(f"{self.place}.output", self.inside(taken, *memory))
        if self.residual:
            out = x + out
        return self.see(f"{self.place}.stream", out if self.pre else self.norm(out))


class Layer(nn.Module):
    """Attention, in a decoder attention to the encoder's output, feed-forward."""

    def __init__(self, make, name, shape, rotation, causal, crosses=False):
        super().__init__()

        def sublayer(part, inside):
            return Sublayer(make, f"{name}.{part}", shape.hidden, inside)

        self.attention = sublayer("attention", Attention(make, f"{name}.attention", shape, rotation, causal))
        self.cross = sublayer("cross", Attention(make, f"{name}.cross", shape, rotation, False)) if crosses else None
        self.feed_forward = sublayer("feed_forward", FeedForward(make, f"{name}.feed_forward", shape))

    def forward(self, x, memory=None):
        x = self.attention(x)
        if self.cross is not None:
            x = self.cross(x, memory)
        return self.feed_forward(x)


def _sinusoids(sequence, width):
    i, t = torch.arange(width), torch.arange(sequence).double()
    turn = t[:, None] * 10000.0 ** (-(i // 2 * 2).double() / width)
    return torch.where(i % 2 == 0, turn.sin(), turn.cos()).float()


class Transformer(nn.Module):
    """A language model; with a decoder the encoder reads a piece of text and the decoder predicts the piece behind it."""

    def __init__(self, make, shape):
        super().__init__()
        arm = make.arm
        self.shape, self.arm, self.see, self.rows = shape, arm, make.see, make.rows
        self.embedding = make.matrix("embedding", shape.vocabulary, shape.hidden, shape.deviation or shape.hidden**-0.5)
        rotation = Rotation(arm.sequence, shape.hidden // shape.heads, shape.theta) if shape.theta else None
        if rotation is None:
            self.register_buffer("positions", _sinusoids(arm.sequence, shape.hidden))
        causal = arm.causal and not shape.decoder
        self.layers = nn.ModuleList(Layer(make, f"layer{i}", shape, rotation, causal) for i in range(arm.layers))
        decoders = range(arm.layers if shape.decoder else 0)
        self.decoders = nn.ModuleList(Layer(make, f"decoder{i}", shape, rotation, True, crosses=True) for i in decoders)
        self.norm = make.norm(shape.hidden) if arm.place == "pre" else nn.Identity()

    def batch(self, text, number):
        """Tokens, targets, of a decoder what the encoder reads, of padded sequences which tokens are real."""
        arm = self.arm
        numbers = torch.arange(number * arm.batch, (number + 1) * arm.batch)
        if self.shape.decoder:
            tokens, targets = text.sequences(numbers, 2 * arm.sequence)
            return tokens[:, arm.sequence :], targets[:, arm.sequence :], tokens[:, : arm.sequence], None
        tokens, targets = text.sequences(numbers, arm.sequence)
        if arm.padding == "unpadded":
            return tokens, targets, None, None
        present = torch.arange(arm.sequence) < data.lengths(numbers, arm.batch, arm.sequence)[:, None]
        return tokens * present, targets.masked_fill(~present, -100), None, present.float()

    def embed(self, tokens):
        embedded = F.embedding(tokens, self.embedding)
        if not self.shape.theta:
            embedded = embedded * math.sqrt(self.shape.hidden) + self.positions
        return self.see("embedding", embedded)

    def loss(self, batch):
        tokens, targets, sources, present = batch
        self.rows.present = present if self.arm.padding == "masked" else None
        memory = None
        if sources is not None:
            memory = self.embed(sources)
            for layer in self.layers:
                memory = layer(memory)
        x = self.embed(tokens)
        for layer in self.decoders or self.layers:
            x = layer(x, memory)
        logits = self.see("logits", F.linear(self.see("final", self.norm(x)), self.embedding))
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


class Layers(nn.Module):
    """Layers of a large model alone, on drawn activations; the loss is the mean square of what they make of them. Weights and activations
    are in the arm's dtype, as large models run."""

    casts = True

    def __init__(self, make, shape):
        super().__init__()
        self.arm, self.hidden = make.arm, shape.hidden
        rotation = Rotation(make.arm.sequence, shape.hidden // shape.heads, shape.theta)
        self.layers = nn.ModuleList(Layer(make, f"layer{i}", shape, rotation, make.arm.causal) for i in range(make.arm.layers))

    def batch(self, text, number):
        return (drawn(self.arm, number),)

    def loss(self, batch):
        x = batch[0].to(self.layers[0].attention.inside.wq.dtype)
        for layer in self.layers:
            x = layer(x)
        return x.float().pow(2).mean()


class _Seed(torch.autograd.Function):
    """0, whose gradient by y is the dy given."""

    @staticmethod
    def forward(ctx, y, dy):
        ctx.save_for_backward(dy)
        return torch.zeros((), device=y.device)

    @staticmethod
    def backward(ctx, _):
        return ctx.saved_tensors[0], None


class Norms(nn.Module):
    """Norms alone, `layers` of them on one tensor of batch x sequence rows, each with the same gradient of its output: the passes of a step
    are theirs, but for a microsecond each. What they make stays until the step's end, as in a model. All is in the arm's dtype."""

    casts = True

    def __init__(self, make):
        super().__init__()
        self.arm = make.arm
        self.norms = nn.ModuleList(make.norm(make.arm.hidden) for _ in range(make.arm.layers))

    def batch(self, text, number):
        return drawn(self.arm, number), drawn(self.arm, -1 - number)

    def loss(self, batch):
        x, dy = (part.to(next(self.parameters()).dtype) for part in batch)
        x.requires_grad_(torch.is_grad_enabled())
        return torch.stack([_Seed.apply(norm(x), dy) for norm in self.norms]).sum()


def drawn(arm, number):
    """Activations of a batch, standard normal."""
    return torch.randn(arm.batch, arm.sequence, arm.hidden, generator=torch.Generator().manual_seed(number % (1 << 63)))


def rows_of(arm):
    return Rows(arm.sequence if arm.by_position else 0)
