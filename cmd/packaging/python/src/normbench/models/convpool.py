# SPDX-License-Identifier: Apache-2.0
"""ConvPool-CNN-C (Springenberg et al. 2015, as in table 10 of Zhang & Sennrich 2019) on drawn images of CIFAR-10's shape: three
convolutions of 96 channels, pooling, three of 192, pooling, one of 192 and two of 192 with a side of 1, the mean of each plane, ten
classes. Pooling takes the largest of 2 x 2 where theirs takes 3 x 3 with a stride of 2.

Behind each convolution a norm, a gain and a bias for each channel, and a leaky ReLU of 0.1. As in the paper's code LayerNorm, RMSNorm and
pRMSNorm are over height and width of one channel of one image; BatchNorm over all images and positions of a channel."""

import torch
import torch.nn.functional as F
from torch import nn

from . import data


class Block(nn.Module):
    def __init__(self, make, name, size, out, side, plane):
        super().__init__()
        arm = make.arm
        self.weight = make.matrix(f"{name}.w", out, size * side * side, (2 / (size * side * side)) ** 0.5)  # He et al. 2015
        self.shape, self.by_channel = (out, size, side, side), arm.norm == "batchnorm"
        self.gain, self.bias = make.vector(out, 1.0), make.vector(out)
        self.gain.requires_grad_(arm.norm != "none" and arm.affine == "learned")
        self.norm = make.norm(out if self.by_channel else plane, affine="none")

    def forward(self, x):
        """x: (images, channels, height, width)."""
        x = F.conv2d(x, self.weight.view(self.shape), padding=self.shape[-1] // 2)
        if self.by_channel:
            x = self.norm(x.movedim(1, -1)).movedim(-1, 1)
        else:
            x = self.norm(x.flatten(2)).view_as(x)
        return F.leaky_relu(self.gain[:, None, None] * x + self.bias[:, None, None], 0.1)


class ConvPool(nn.Module):
    """hidden: channels of the first three convolutions, half of those of the others; sequence: the side of an image."""

    def __init__(self, make):
        super().__init__()
        self.arm, some, side = make.arm, make.arm.hidden, make.arm.sequence
        many = 2 * some
        sizes = [data.COLOURS, some, some, some, many, many, many, many, many]
        outs, kernels, pools = [some] * 3 + [many] * 6, [3] * 7 + [1] * 2, [1] * 3 + [2] * 3 + [4] * 3
        parts = enumerate(zip(sizes, outs, kernels, pools))
        self.blocks = nn.ModuleList(Block(make, f"layer{i}", size, out, k, (side // p) ** 2) for i, (size, out, k, p) in parts)
        self.head = make.matrix("head.w", data.CLASSES, many, many**-0.5)
        self.bias = make.vector(data.CLASSES)

    def batch(self, text, number):
        return data.textures(torch.arange(number * self.arm.batch, (number + 1) * self.arm.batch), self.arm.sequence)

    def loss(self, batch):
        x, classes = batch
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i in (2, 5):
                x = F.max_pool2d(x, 2)
        return F.cross_entropy(F.linear(x.mean((2, 3)), self.head, self.bias).float(), classes)
