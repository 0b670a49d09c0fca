#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peers.py LIBRARY [--before LIBRARY] [--shapes forward:4096x4096,..] [--seconds S]: our kernels for GPUs beside those that Python brings.

Loads libnormkernels_cuda.so by ctypes and times its kernels interleaved with another version's (--before), PyTorch's own, torch.compile's, Liger's and
QuACK's, on the same bf16 tensors and parameters, by events, on buffers that rotate through three times the GPU's last cache; and with copies that move as many bytes,
PyTorch's and ours, of which the fastest is the roof. Every call is captured into a CUDA graph of one round through the buffers, so that no framework's
dispatch is timed; torch.compile therefore tunes without graphs of its own (they would copy inputs). A row of the table is printed when it is known; what is
not there, or does not run, is a line with the reason.

--warm only compiles what the others are to run, into the caches on disk that their variables name (TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR), and notes
there what is done: of torch.compile a comparison takes first what was compiled so, at its end what was not. --try LIBRARY calls the kernels of an emulation
(libnormkernels_cuda_emulated.so) on the host's memory, to see that calls are made as kernel.h has them; it needs neither PyTorch nor a GPU.

Exit codes: 0; 1 with --try: a call is wrong; 2 usage; 77 no PyTorch or no GPU."""
import argparse
import ctypes
import importlib.util
import math
import os
import random
import statistics
import sys
import time

EPS = 1e-5
F32, BF16, OP_COPY, PARAM_X = 0, 2, 8, 1


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

    def copies(self, back):
        """Names of the copies with the loads and stores of a norm's pass; the driver's is PyTorch's, too."""
        return [n for (n, d), k in self.kernels.items() if k.op == OP_COPY and d == BF16 and k.pass_ == back and n != "copy_driver"
                and (k.loads, k.stores) == ((2, 1) if back else (1, 1))]

    def call(self, name, dtype, tensors, rows, cols, stream=None, centre=False):
        """A function that enqueues one call; tensors: addresses by the call's fields. ValueError: the kernel refuses it."""
        kernel = self.kernels[name, dtype]
        formula = Formula(struct_size=ctypes.sizeof(Formula), root=1, affine=2 if centre else 1, param=PARAM_X)
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

def ours(library, name, buffers, centre, torch):
    stream = torch.cuda.current_stream().cuda_stream
    runs = []
    for b in buffers:
        tensors = {f: t.data_ptr() for f, t in b.items() if hasattr(Call, f)}
        rows, cols = b["x"].shape
        run = library.call(name, BF16, tensors, rows, cols, stream, centre)
        if run.scratch_bytes:
            run.scratch = torch.empty(run.scratch_bytes, dtype=torch.uint8, device="cuda")
            run.set("scratch", run.scratch.data_ptr())
        runs.append(run)

    def all_of_them():
        now = torch.cuda.current_stream().cuda_stream  # of the graph that is captured
        for run in runs:
            run.set("stream", now)
            run()

    return all_of_them


def torch_copy(buffers, moved, torch):
    """By PyTorch, as many bytes as the norm's tensors have."""
    pairs = [[torch.empty(moved // 2, dtype=torch.uint8, device="cuda") for _ in range(2)] for _ in buffers]

    def all_of_them():
        for source, target in pairs:
            target.copy_(source)

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
MODULES = {"Liger": "liger_kernel", "QuACK": "quack"}
SLOW = "torch.compile"  # compiles for seconds, unless warmed


def theirs(make, op, back, buffers, torch):
    norm = make(op, torch)
    parameters = [{f: b[f].float() if getattr(norm, "is_wide", False) else b[f] for f in ("gamma", "beta")} for b in buffers]
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
    graph.replay()  # the device is at work while the rest is enqueued
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
        b = {"x": x, **{f: (torch.rand(cols, device="cuda") + 0.5).to(x.dtype) for f in ("gamma", "beta")}}
        if back:
            b.update(dy=torch.randn_like(x), dx=torch.empty_like(x), dgamma=torch.empty(cols, device="cuda"), dbeta=torch.empty(cols, device="cuda"))
            wide = x.float()
            b["mean"] = wide.mean(1)
            b["rstd"] = torch.rsqrt((wide.var(1, unbiased=False) if op == "layernorm" else wide.square().mean(1)) + EPS)
        else:
            b["y"] = torch.empty_like(x)
        made.append(b)
    return made


def warmed_file():
    return os.path.join(os.environ.get("TORCHINDUCTOR_CACHE_DIR", "."), "warmed")


def warm(what, names, torch):
    """Compiles, for the caches on disk."""
    op, back, rows, cols = what
    buffers = buffers_of(op, rows, cols, back, torch)[:1]
    for name in names:
        try:
            theirs(OTHERS[name], op, back, buffers, torch)()
        except Exception as error:  # the comparison says so
            print(f"{name_of(what)} {name}: {error_text(error)}", flush=True)
    with open(warmed_file(), "a") as f:
        f.write(name_of(what) + "\n")


def name_of(what):
    op, back, rows, cols = what
    return f"{op} {'backward' if back else 'forward'} {rows}x{cols}"


def error_text(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"


def run_of(name, what, libraries, buffers, moved, torch):
    op, back = what[:2]
    if name in OTHERS:
        return theirs(OTHERS[name], op, back, buffers, torch)
    if name == "copy_":
        return torch_copy(buffers, moved, torch)
    kernel = f"{op}_backward_row" if back else f"{op}_row"
    return ours(libraries[name == "before"], kernel if name in ("ours", "before") else name, buffers, op == "layernorm", torch)


def outputs_of(b):
    return [b[f].clone() for f in ("y", "dx", "dgamma", "dbeta") if f in b]


def check(name, run, buffers, result, torch):
    """What is wrong with an arm that has just run, or None."""
    if name == "before" and not all(torch.equal(a, b) for a, b in zip(result, outputs_of(buffers[-1]))):
        return "other bits than ours"
    if name in OTHERS and result:
        difference = (run.last.float() - result[0].float()).abs().max().item()
        return None if difference < 0.25 else f"differs from ours by {difference:.3g}"
    return None


def compare(what, names, libraries, blocks, torch):
    """Medians in us by arm, and what went wrong by arm; None: there is nothing to compare with."""
    op, back, rows, cols = what
    moved = (3 if back else 2) * 2 * rows * cols
    stream, arms, wrong, result = torch.cuda.Stream(), {}, {}, None
    kept = []  # a graph does not keep the tensors of its calls
    with torch.cuda.stream(stream):
        buffers = buffers_of(op, rows, cols, back, torch)
        for name in names:
            try:
                run = run_of(name, what, libraries, buffers, moved, torch)
                kept.append(run)
                arms[name] = captured(run, stream, torch)
                result = outputs_of(buffers[-1]) if name == "ours" else result
                wrong[name] = check(name, run, buffers, result, torch)
            except Exception as error:  # whatever others' code raises is their line
                arms.pop(name, None)
                wrong[name] = error_text(error)
        times = {name: [] for name in arms}
        rounds = {name: max(1, round(400 / (len(buffers) * sample_us(g, 1, len(buffers), stream, torch)))) for name, g in arms.items()}
        order = list(arms)
        for block in range(blocks):
            order.reverse() if block % 2 else random.shuffle(order)
            for name in order:
                times[name].append(sample_us(arms[name], rounds[name], len(buffers), stream, torch))
    return {name: statistics.median(us) for name, us in times.items()}, {name: why for name, why in wrong.items() if why}


COLUMNS = ["ours", "before", *OTHERS]
HEAD = "  %-30s%8s%s%8s%10s%9s  (ours)" % ("", "copy", "".join("%9s" % c.removeprefix("torch.") for c in COLUMNS), "GB/s", "of copy", "to best")


def row_of(what, us):
    """The fastest copy, each arm, and ours beside both."""
    op, back, rows, cols = what
    moved = (3 if back else 2) * 2 * rows * cols
    copy = min((name for name in us if name not in COLUMNS), key=us.get)
    other = min((us[n] for n in OTHERS if n in us), default=math.nan)
    own = us.get("ours", math.nan)
    cells = "".join(f"{us[c]:9.2f}" if c in us else f"{'-':>9}" for c in COLUMNS)
    return f"  {name_of(what):<30}{us[copy]:8.2f}{cells}{moved / own / 1e3:8.0f}{100 * us[copy] / own:8.1f} %{own / other:9.3f}  {copy}"


def shapes_of(text):
    for item in text.split(","):
        name, _, shape = item.partition(":")
        rows, _, cols = shape.partition("x")
        yield name == "backward", int(rows), int(cols)


SHAPES = ("forward:8192x2048,backward:8192x2048,forward:65536x256,forward:4096x4096,forward:512x32768,forward:128x131072,forward:64x262144,"
          "forward:2048x8192,backward:4096x4096,backward:2048x8192")


def tabulate(options, names, libraries, comparisons, torch):
    end, said = time.monotonic() + options.seconds, set()
    warmed = []
    if os.path.exists(warmed_file()):
        with open(warmed_file()) as f:
            warmed = f.read().splitlines()
    late = [w for w in comparisons if name_of(w) not in warmed]
    turns = [(w, [n for n in names if n != SLOW or w not in late]) for w in comparisons]
    turns += [(w, [n for n in names if n == SLOW or n not in OTHERS]) for w in late]
    print(HEAD)
    for what, arms in turns:
        if time.monotonic() > end:
            print(f"  {name_of(what)}{'' if SLOW not in arms or len(arms) > 4 else ', ' + SLOW}: no time left")
            continue
        us, wrong = compare(what, [*arms, *libraries[0].copies(what[1])], libraries, options.blocks, torch)
        print(row_of(what, us) if us else f"  {name_of(what)}: nothing ran", flush=True)
        for name, why in wrong.items():
            if (name, why) not in said:
                print(f"    {name_of(what)}, {name}: {why}", flush=True)
            said.add((name, why))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--before", metavar="LIBRARY", help="another version of it, timed beside it")
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--seconds", type=float, default=80, help="no comparison is begun after that")
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--try", action="store_true", dest="emulated")
    parser.add_argument("--warm", action="store_true")
    options = parser.parse_args()
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
    libraries = [Library(path) for path in (options.library, options.before) if path]
    missing = [n for n in MODULES if not importlib.util.find_spec(MODULES[n])]
    others = [n for n in OTHERS if n not in missing]
    comparisons = [(op, *shape) for op in ("rmsnorm", "layernorm") for shape in shapes_of(options.shapes)]
    if options.warm:
        for what in comparisons:
            warm(what, others, torch)
        return 0
    print(f"peers: {torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, bf16, cold, one process; us, medians of {options.blocks} blocks")
    for name in missing:
        print(f"  {name}: not installed: there is no module {MODULES[name]}")
    tabulate(options, ["ours", *(["before"] if options.before else []), "copy_", *others], libraries, comparisons, torch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
