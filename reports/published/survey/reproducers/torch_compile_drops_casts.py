# SPDX-License-Identifier: Apache-2.0
"""PyTorch: a bf16 norm that torch.compile compiles is not rounded to bf16 where its source says so

Results are more accurate and differ from those of the same code in eager mode. torch._inductor.config.emulate_precision_casts keeps the roundings."""

import torch


def llama(x, weight):
    f = x.float()
    return weight * (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


print("torch", torch.__version__)
generator = torch.Generator().manual_seed(1)
x, weight = (torch.randn(*shape, generator=generator).bfloat16() for shape in ((64, 512), (512,)))
eager = llama(x, weight)
for emulated in (False, True):
    compiled = torch.compile(llama, options={"emulate_precision_casts": emulated})(x, weight)
    print(f"emulate_precision_casts={emulated}: {(compiled != eager).sum()} of {x.numel()} elements differ from eager mode")
    torch._dynamo.reset()
