#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peers.py LIBRARY [--shapes 4096x4096,..] [--seconds S]: our kernels for GPUs beside those that Python brings.

Loads libnormkernels_cuda.so by ctypes and times its kernels interleaved with PyTorch's own, torch.compile's, Liger's and QuACK's, on the same bf16
tensors, by events, on buffers that rotate through three times the GPU's last cache. Every call, ours too, is captured into a CUDA graph of one round
through the buffers, so that no framework's dispatch is timed; torch.compile therefore tunes without graphs of its own (they would copy inputs). What is
not there, or does not run, is a line with the reason.

--warm only compiles what torch.compile is to run, into the caches that its variables name (TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR), so
that a comparison need not. --try LIBRARY calls the kernels of an emulation (libnormkernels_cuda_emulated.so) on the host's memory, to see that calls are made
as kernel.h has them; it needs neither PyTorch nor a GPU.

Exit codes: 0; 1 with --try: a call is wrong; 2 usage; 77 no PyTorch or no GPU."""
import argparse
import ctypes
import itertools
import math
import random
import statistics
import sys
import time

EPS = 1e-5
F32, BF16 = 0, 2


# ---- kernel.h, as far as it is used here ---------------------------------------------------------------------------------

def _struct(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": [(n, t) for t, names in fields for n in names.split()]})


u32, i64, real, at, text = ctypes.c_uint32, ctypes.c_int64, ctypes.c_double, ctypes.c_void_p, ctypes.c_char_p
Formula = _struct("Formula", (u32, "struct_size root eps_place cast weight_offset affine param round_sum"))
Call = _struct(
    "Call", (u32, "struct_size mode layout"), (ctypes.c_int32, "n_threads"), (i64, "rows cols n c hw k"), (real, "eps alpha momentum"),
    (Formula, "formula"), (at, "x residual gamma beta y residual_out"), (i64, "x_stride residual_stride y_stride residual_out_stride"),
    (at, "dy dresidual_out dx dresidual"), (i64, "dy_stride dresidual_out_stride dx_stride dresidual_stride"),
    (at, "dgamma dbeta dalpha mean rstd running_mean_in running_var_in running_mean_out running_var_out scratch tuning stream"))
Run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Call), ctypes.c_int, i64, i64)
Applicable = ctypes.CFUNCTYPE(text, ctypes.POINTER(Call))
Scratch = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.POINTER(Call))
Phases = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Call))
Units = ctypes.CFUNCTYPE(i64, ctypes.POINTER(Call), ctypes.c_int)
Kernel = _struct(
    "Kernel", (u32, "struct_size op pass_ dtype width cpu_features"), (text, "name variant summary"),
    (u32, "style stats stats_dtype variance flags roots eps_places casts weight_offsets affines params round_sums"),
    (ctypes.c_float, "loads stores flops"), (Run, "run"), (Applicable, "applicable"), (at, "row_local chain"), (Scratch, "scratch_bytes"),
    (Phases, "n_phases"), (Units, "n_units"))


class Library:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        table = self.library.normbench_kernels
        table.restype = ctypes.POINTER(ctypes.POINTER(Kernel))
        n = ctypes.c_size_t()
        kernels = table(1, ctypes.byref(n))
        self.kernels = {(k.name.decode(), k.dtype): k for k in (kernels[i].contents for i in range(n.value))}

    def call(self, name, dtype, tensors, rows, cols, stream=None, centre=False):
        """A function that enqueues one call; tensors: addresses by the call's fields. ValueError: the kernel refuses it."""
        kernel = self.kernels[name, dtype]
        formula = Formula(struct_size=ctypes.sizeof(Formula), root=1, affine=2 if centre else 1)
        call = Call(struct_size=ctypes.sizeof(Call), n_threads=1, rows=rows, cols=cols, k=cols, eps=EPS, formula=formula, stream=stream)
        for field in ("x", "residual", "y", "residual_out", "dy", "dresidual_out", "dx", "dresidual"):
            setattr(call, field + "_stride", cols)
        for field, address in tensors.items():
            setattr(call, field, address)
        reason = kernel.applicable(call) if kernel.applicable else None
        if reason:
            raise ValueError(reason.decode())
        phases = [(p, kernel.n_units(call, p) if kernel.n_units else rows) for p in range(kernel.n_phases(call) if kernel.n_phases else 1)]

        def run():
            for phase, units in phases:
                code = kernel.run(call, phase, 0, units)
                if code:
                    raise RuntimeError(f"{name} returned {code}")

        run.scratch_bytes = kernel.scratch_bytes(call) if kernel.scratch_bytes else 0
        run.set = lambda field, address: setattr(call, field, address)
        return run


# ---- without a GPU ----------------------------------------------------------------------------------------------------------

def try_emulated(path):
    library, rows, cols, wrong = Library(path), 3, 1000, 0
    x = [[random.gauss(0, 1) for _ in range(cols)] for _ in range(rows)]
    flat = (ctypes.c_float * (rows * cols))(*(v for row in x for v in row))
    gamma, beta = (ctypes.c_float * cols)(*([1.5] * cols)), (ctypes.c_float * cols)(*([0.25] * cols))
    y = (ctypes.c_float * (rows * cols))()
    address = ctypes.addressof
    for name, centre in (("rmsnorm_row", False), ("layernorm_row", True)):
        library.call(name, F32, {"x": address(flat), "gamma": address(gamma), "beta": address(beta), "y": address(y)}, rows, cols, centre=centre)()
        for r, row in enumerate(x):
            mean = statistics.fmean(row) if centre else 0.0
            rstd = 1 / math.sqrt(statistics.fmean((v - mean) ** 2 for v in row) + EPS)
            wrong += sum(abs((v - mean) * rstd * 1.5 + 0.25 * centre - y[r * cols + i]) > 1e-5 for i, v in enumerate(row))
    print(f"calls by ctypes, emulated: {wrong} of {2 * rows * cols} elements wrong")
    return 1 if wrong else 0


# ---- what is compared ---------------------------------------------------------------------------------------------------------

def ours(library, op, back, buffers, torch):
    stream = torch.cuda.current_stream().cuda_stream
    runs = []
    for b in buffers:
        tensors = {f: t.data_ptr() for f, t in b.items()}
        rows, cols = b["x"].shape
        run = library.call(f"{op}_backward_row" if back else f"{op}_row", BF16, tensors, rows, cols, stream, op == "layernorm")
        if run.scratch_bytes:
            b["scratch"] = torch.empty(run.scratch_bytes, dtype=torch.uint8, device="cuda")
            run.set("scratch", b["scratch"].data_ptr())
        runs.append(run)

    def all_of_them():
        now = torch.cuda.current_stream().cuda_stream  # of the graph that is captured
        for run in runs:
            run.set("stream", now)
            run()

    return all_of_them


def norm_of(op, torch):
    functional = torch.nn.functional
    if op == "layernorm":
        return lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b, EPS)
    return lambda x, w, b: functional.rms_norm(x, x.shape[-1:], w, EPS)


def liger(op, torch):
    if op == "layernorm":
        from liger_kernel.ops.layer_norm import LigerLayerNormFunction
        return lambda x, w, b: LigerLayerNormFunction.apply(x, w, b, EPS)
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    return lambda x, w, b: LigerRMSNormFunction.apply(x, w, EPS, 0.0, "llama", False)


def quack(op, torch):
    if op == "layernorm":  # forward alone, with parameters in f32
        from quack.rmsnorm import layernorm_fwd

        def norm(x, w, b):
            return layernorm_fwd(x, w, b, EPS)

        norm.is_wide = True
        return norm
    from quack import rmsnorm
    return lambda x, w, b: rmsnorm(x, w, eps=EPS)


def compiled(op, torch):
    torch._dynamo.reset()
    return torch.compile(norm_of(op, torch), dynamic=False, mode="max-autotune-no-cudagraphs")


OTHERS = {"PyTorch": norm_of, "torch.compile": compiled, "Liger": liger, "QuACK": quack}


def theirs(make, op, back, buffers, torch):
    """Their parameters are bf16, as models have them, where they take these; ours f32, which a call reads once."""
    norm = make(op, torch)
    is_wide = getattr(norm, "is_wide", False)
    parameters = [{f: b[f] if is_wide else b[f].to(b["x"].dtype) for f in ("gamma", "beta")} for b in buffers]
    if not back:
        def forward():
            for b, n in zip(buffers, parameters):
                forward.last = norm(b["x"], n["gamma"], n["beta"])

        return forward
    graphs = []
    for b, n in zip(buffers, parameters):
        wanted = [t.detach().requires_grad_() for t in ((b["x"], n["gamma"], n["beta"]) if op == "layernorm" else (b["x"], n["gamma"]))]
        graphs.append((norm(*wanted, *([None] if op != "layernorm" else [])), wanted, b["dy"]))

    def backward():
        for y, wanted, dy in graphs:
            backward.last = torch.autograd.grad(y, wanted, dy, retain_graph=True)[0]

    return backward


# ---- timing --------------------------------------------------------------------------------------------------------------------

def captured(run, stream, torch):
    """One round through all buffers as a graph. It is replayed once: what was enqueued while it was captured has not run."""
    for _ in range(2):
        run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        run()
    graph.replay()
    stream.synchronize()
    return graph


def sample_us(graph, rounds, n_buffers, stream, torch):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record(stream)
    for _ in range(rounds):
        graph.replay()
    end.record(stream)
    end.synchronize()
    return 1e3 * begin.elapsed_time(end) / (rounds * n_buffers)


def buffers_of(op, rows, cols, back, torch):
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    made = []
    for _ in range(max(1, math.ceil(3 * l2 / ((3 if back else 2) * 2 * rows * cols)))):
        x = torch.randn(rows, cols, device="cuda", dtype=torch.bfloat16)
        b = {"x": x, "gamma": torch.rand(cols, device="cuda") + 0.5, "beta": torch.rand(cols, device="cuda")}
        if back:
            b.update(dy=torch.randn_like(x), dx=torch.empty_like(x), dgamma=torch.empty(cols, device="cuda"), dbeta=torch.empty(cols, device="cuda"))
            wide = x.float()
            b["mean"] = wide.mean(1)
            b["rstd"] = torch.rsqrt((wide.var(1, unbiased=False) if op == "layernorm" else wide.square().mean(1)) + EPS)
        else:
            b["y"] = torch.empty_like(x)
        made.append(b)
    return made


def warm(op, back, rows, cols, torch):
    """Compiles, for the caches on disk."""
    theirs(compiled, op, back, buffers_of(op, rows, cols, back, torch)[:1], torch)()


def compare(library, op, back, rows, cols, names, blocks, torch):
    """Lines of the table."""
    stream, arms, wrong = torch.cuda.Stream(), {}, []
    with torch.cuda.stream(stream):
        buffers = buffers_of(op, rows, cols, back, torch)
        arms["ours"] = captured(ours(library, op, back, buffers, torch), stream, torch)
        result = buffers[-1]["dx" if back else "y"].float()
        for name in names:
            try:
                run = theirs(OTHERS[name], op, back, buffers, torch)
                arms[name] = captured(run, stream, torch)
                difference = (run.last.float() - result).abs().max().item()
                if not difference < 0.25:
                    wrong.append(f"{name}: differs from ours by {difference:.3g}")
            except Exception as error:  # whatever others' code raises is their line
                arms.pop(name, None)
                wrong.append(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:120]}")
        times = {name: [] for name in arms}
        rounds = {name: max(1, round(400 / (len(buffers) * sample_us(g, 1, len(buffers), stream, torch)))) for name, g in arms.items()}
        order = list(arms)
        for block in range(blocks):
            order.reverse() if block % 2 else random.shuffle(order)
            for name in order:
                times[name].append(sample_us(arms[name], rounds[name], len(buffers), stream, torch))
    bytes_ = (3 if back else 2) * 2 * rows * cols
    for name, us in times.items():
        ratio = math.exp(statistics.median(math.log(t / o) for t, o in zip(us, times["ours"])))
        yield f"{name:<14} {statistics.median(us):9.2f} us {bytes_ / statistics.median(us) / 1e3:6.0f} GB/s {ratio:6.3f} x ours"
    yield from wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--shapes", default="8192x2048,4096x4096,512x32768")
    parser.add_argument("--seconds", type=float, default=80, help="no comparison is begun after that")
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--try", action="store_true", dest="emulated")
    parser.add_argument("--warm", action="store_true")
    options = parser.parse_args()
    start = time.monotonic()
    if options.emulated:
        return try_emulated(options.library)
    try:
        import torch
    except ImportError as error:
        print(f"no PyTorch: {error}")
        return 77
    if not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} finds no GPU")
        return 77
    library = Library(options.library)
    print(f"peers: {torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, bf16, cold; medians of {options.blocks} blocks in one process")
    shapes = [tuple(int(n) for n in shape.split("x")) for shape in options.shapes.split(",")]
    slow = ["torch.compile"]  # compiles for seconds, unless warmed: after all others
    for names in [slow] if options.warm else [[n for n in OTHERS if n not in slow], slow]:
        for (rows, cols), op, back in itertools.product(shapes, ("rmsnorm", "layernorm"), (False, True)):
            what = f"{op} {'backward' if back else 'forward'} {rows}x{cols}"
            if options.warm:
                warm(op, back, rows, cols, torch)
                continue
            in_time = time.monotonic() - start <= options.seconds
            for line in compare(library, op, back, rows, cols, names, options.blocks, torch) if in_time else [f"{', '.join(names)}: no time left"]:
                print(f"  {what:<34} {line}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
