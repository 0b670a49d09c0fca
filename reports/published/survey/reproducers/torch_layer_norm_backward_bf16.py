# SPDX-License-Identifier: Apache-2.0
"""PyTorch: in bf16 on one thread of a CPU, weight.grad of layer_norm is summed in bf16, so that its error grows with the number of rows

The documentation names no accumulator; torch.sum of bf16 on one thread is in float32. Found in no report."""

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
generator = torch.Generator().manual_seed(1)
print("torch", torch.__version__)
for rows in (64, 1024, 16384):
    x = torch.randn(rows, 64, generator=generator).bfloat16()
    weight = torch.ones(64, dtype=torch.bfloat16, requires_grad=True)
    bias = torch.zeros(64, dtype=torch.bfloat16, requires_grad=True)
    F.layer_norm(x, (64,), weight, bias).sum(0).backward(torch.ones(64, dtype=torch.bfloat16))
    wide = torch.ones(64, dtype=torch.float64, requires_grad=True)
    F.layer_norm(x.double(), (64,), wide).sum().backward()
    worst = ((weight.grad.double() - wide.grad).abs() / wide.grad.abs().max()).max()
    print(f"{rows:6} rows: error {worst:.1%} of the largest; bias.grad {bias.grad[0].item():g}, exactly {rows}")
