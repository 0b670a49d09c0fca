# SPDX-License-Identifier: Apache-2.0
"""PyTorch: on a CPU, batch_norm in evaluation loses digits of a contiguous x where the running mean is large

It takes x * alpha + beta, where the documented formula is (x - mean) / sqrt(var + eps); where x has other strides, the digits are kept.
Found in no report; pytorch#5410, closed, is of constant channels in training."""

import torch
import torch.nn.functional as F

print("torch", torch.__version__)
x = 1000 + torch.randn(64, 8, generator=torch.Generator().manual_seed(1))
mean, var = x.mean(0), x.var(0)
exact = (x.double() - mean.double()) / (var.double() + 1e-5).sqrt()
for name, given in (("contiguous", x), ("other strides", x.t().contiguous().t())):
    y = F.batch_norm(given, mean, var, eps=1e-5)
    print(f"{name:13}: largest error {(y - exact).abs().max():.1e}, where the largest y is {exact.abs().max():.1f}")
