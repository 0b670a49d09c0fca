# SPDX-License-Identifier: Apache-2.0
"""What is measured of a model: steps, their memory, a course of training. A step is forward, backward, and an update (clipping as
clip_grad_norm_, fused AdamW, gradients set to none); its batch is made before it begins.

f16 and bf16 run under autocast, with parameters and their updates in f32, as MiniMind's trainer and most others do, and f16 with the loss
scale of torch.amp.GradScaler (65536 at first, halved by a step whose gradients overflow, which is left out, doubled after 2000 good
ones). Casts by hand would decide themselves where the norm computes in half precision. Layers of a large model are in the dtype whole."""

import math
import random
import resource
import time

import torch

from . import workloads
from .worker import why

RECORDS, UNSEEN_BATCHES, UNSEEN_FROM, MOST_BLOCKS, MEMORY_STEPS = 11, 16, 1 << 24, 256, 2
PARTS = ("step", "forward", "backward", "update")


class Clock:
    """Marks of time: of this machine, or events of the GPU, which are read when all is done."""

    def __init__(self, device):
        self.on_gpu, self.marks = device != "cpu", []

    def mark(self):
        if self.on_gpu:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.marks.append(event)
        else:
            self.marks.append(time.perf_counter())

    def seconds(self):
        """Of each piece between two marks."""
        pairs = list(zip(self.marks, self.marks[1:]))
        if not self.on_gpu:
            return [after - before for before, after in pairs]
        torch.cuda.synchronize()
        return [before.elapsed_time(after) / 1e3 for before, after in pairs]


class Scale:
    """The dynamic loss scale of f16; else 1."""

    def __init__(self, dtype):
        self.dynamic = dtype == "f16"
        self.value, self.good = 65536.0 if self.dynamic else 1.0, 0

    def update(self, is_finite):
        if not is_finite:
            self.value, self.good = self.value / 2, 0
        else:
            self.good += 1
            if self.good == 2000:
                self.value, self.good = self.value * 2, 0


class Trainer:
    """A model with its optimizer."""

    def __init__(self, arm, workload, text, drawn=None):
        self.arm, self.text = arm, text
        self.model = workloads.build(arm, workload, drawn)
        self.optimizer = workloads.optimizer_of(self.model, arm, workload)
        self.parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.scale, self.gradient_norm = Scale(arm.dtype), None

    def batch(self, number):
        return [part if part is None else part.to(self.arm.device) for part in self.model.batch(self.text, number)]

    def forward(self, batch):
        if self.arm.dtype == "f32" or self.model.casts:
            return self.model.loss(batch)
        with torch.autocast(self.arm.device, workloads.DTYPES[self.arm.dtype]):
            return self.model.loss(batch)

    def update(self):
        """True unless the loss scale left it out."""
        if self.scale.dynamic:
            torch._foreach_mul_([p.grad for p in self.parameters if p.grad is not None], 1 / self.scale.value)
        self.gradient_norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.arm.clip or math.inf)
        makes = not self.scale.dynamic or bool(torch.isfinite(self.gradient_norm))
        if self.scale.dynamic:
            self.scale.update(makes)
        if makes:
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return makes

    def step(self, batch, clock=None):
        """The loss, a tensor, and whether the update was made. clock: marks beginning and end of each part."""
        mark = clock.mark if clock else (lambda: None)
        mark()
        loss = self.forward(batch)
        mark()
        (loss * self.scale.value if self.scale.dynamic else loss).backward()
        mark()
        made = self.update()
        mark()
        return loss.detach(), made

    def keeps(self, batch):
        """Bytes that a forward pass saves for the backward pass, each storage once, parameters not."""
        own = {p.untyped_storage().data_ptr() for p in self.model.parameters()}
        saved, statistics = {}, [(b, b.clone()) for b in self.model.buffers()]

        def pack(tensor):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own:
                saved[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss = self.forward(batch)
        loss.backward()
        self.optimizer.zero_grad(set_to_none=True)
        for buffer, before in statistics:  # BatchNorm's running ones: this was no step
            buffer.copy_(before)
        return sum(saved.values())


# ---- steps ----


def _timed(trainer, batch):
    clock = Clock(trainer.arm.device)
    loss, _ = trainer.step(batch, clock)
    forward, backward, update = clock.seconds()
    return {"step": forward + backward + update, "forward": forward, "backward": backward, "update": update, "loss": loss.item()}


def _inferred(trainer, batch):
    clock = Clock(trainer.arm.device)
    trainer.model.eval()
    with torch.inference_mode():
        clock.mark()
        loss = trainer.forward(batch)
        clock.mark()
    (seconds,) = clock.seconds()
    return {"step": seconds, "forward": seconds, "loss": loss.item()}


def _warmed_up(arms, workload, text, once):
    """Of each arm a trainer that has made a step, in which what compiles is compiled; or the exception that came of it."""
    drawn, made = {}, []
    for arm in arms:
        try:
            trainer = Trainer(arm, workload, text, drawn)
            once(trainer, trainer.batch(0))
            made.append(trainer)
        except Exception as error:  # the arms beside it go on
            made.append(error.with_traceback(None))
    return made


def steps(arms, workload, text, request, once=_timed):
    """Arms take turns in one process. A block is a step of every arm on the same batch; orders are random, and each is followed by its
    reverse, so that drift weighs on all alike. At least two blocks, until `launch_s` is over."""
    trainers = _warmed_up(arms, workload, text, once)
    order = [i for i, trainer in enumerate(trainers) if isinstance(trainer, Trainer)]
    if not order:
        raise trainers[0]
    shuffled, block, start = random.Random(int(request["seed"])), 0, time.perf_counter()
    measured = [[] for _ in arms]
    while block + 2 <= MOST_BLOCKS and (block == 0 or time.perf_counter() - start < request["launch_s"]):
        shuffled.shuffle(order)
        for turn in (order, order[::-1]):
            for i in turn:
                measured[i].append(once(trainers[i], trainers[i].batch(block)))
            block += 1
    answers = []
    for arm, rows, made in zip(arms, measured, trainers):
        figures = {part: [row[part] for row in rows] for part in rows[0]} if rows else {"reason": why(made)}
        answers.append({"arm": arm.text, **figures})
    return answers


def inference(arms, workload, text, request):
    """The same of forward passes that keep nothing: "step" and "forward" are one."""
    return steps(arms, workload, text, request, _inferred)


# ---- memory ----


def _peak(device):
    if device != "cpu":
        return torch.cuda.max_memory_allocated()
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory(arms, workload, text, request):
    """What a model takes at most in two steps: on a GPU of the allocator's memory, on a CPU of the process's, less what it had before."""
    if len(arms) > 1:
        raise workloads.Refused("memory is of one arm, since a process's peak only grows: one request each")
    if arms[0].device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    before = _peak(arms[0].device)
    trainer = Trainer(arms[0], workload, text)
    for number in range(MEMORY_STEPS):
        trainer.step(trainer.batch(number))
    answer = {"arm": arms[0].text, "peak_bytes": _peak(arms[0].device) - before}
    answer["parameter_bytes"] = sum(p.numel() * p.element_size() for p in trainer.model.parameters())
    return [{**answer, "kept_bytes": trainer.keeps(trainer.batch(0))}]


# ---- a course ----


class Curves:
    """Standard deviations of activations and of the loss's gradients by them, at the places that the model names, in recorded steps. Of a
    place that is seen several times in a step the widest counts."""

    def __init__(self):
        self.steps, self.curves, self.scale = [], {}, 1.0

    def begin(self, step, scale):
        self.steps.append(step)
        self.scale = scale

    def _keep(self, place, gradient, tensor, scale=1.0):
        std = tensor.detach().double().std(unbiased=False).item() / scale
        row = self.curves.setdefault((place, gradient), {})
        at = len(self.steps) - 1
        row[at] = std if at not in row or not std <= row[at] else row[at]

    def __call__(self, place, tensor, apart):
        """apart: the gradient that is meant is of this use of the tensor alone."""
        self._keep(place, False, tensor)
        seen = tensor.view_as(tensor) if apart else tensor
        if seen.requires_grad:
            seen.register_hook(lambda gradient, scale=self.scale: self._keep(place, True, gradient, scale))
        return seen

    def rows(self):
        n = range(len(self.steps))
        return [{"place": place, "gradient": gradient, "std": [row.get(i) for i in n]} for (place, gradient), row in self.curves.items()]


def recorded_steps(steps):
    """Eleven, evenly over the run, the first and the last among them."""
    return {int((steps - 1) * r / (RECORDS - 1) + 0.5) for r in range(RECORDS)}


def final_loss(losses, wanted):
    """Mean over the last tenth of the steps; the first step's, which knows nothing, where the run ended in no number."""
    tail = max(1, wanted // 10)
    last = math.fsum(losses[wanted - tail :]) / tail if len(losses) == wanted and all(map(math.isfinite, losses[-tail:])) else math.nan
    return last if math.isfinite(last) else losses[0]


def _train(trainer, steps, curves):
    """Losses of the steps made, and how many failed: without a finite loss and gradient, left out by the loss scale, or not made after a
    loss that is no number."""
    losses, failed, recorded = [], 0, recorded_steps(steps)
    for number in range(steps):
        trainer.model.make.observer = curves if number in recorded else None
        if number in recorded:
            curves.begin(number, trainer.scale.value)
        loss, made = trainer.step(trainer.batch(number))
        losses.append(loss.item())
        failed += not (made and math.isfinite(losses[-1]) and math.isfinite(trainer.gradient_norm.item()))
        if not math.isfinite(losses[-1]) and not trainer.scale.dynamic:
            return losses, failed + steps - len(losses)
    return losses, failed


def _unseen(trainer):
    """Mean loss in inference mode of batches behind those that were trained on."""
    trainer.model.make.observer = None
    trainer.model.eval()
    with torch.no_grad():
        return sum(trainer.forward(trainer.batch(UNSEEN_FROM + i)).item() for i in range(UNSEEN_BATCHES)) / UNSEEN_BATCHES


def _course(arm, workload, text, steps):
    trainer, curves = Trainer(arm, workload, text), Curves()
    kept = trainer.keeps(trainer.batch(0))
    losses, failed = _train(trainer, steps, curves)
    ended = len(losses) < steps or not math.isfinite(losses[-1])
    return {
        "arm": arm.text,
        "loss": losses,
        "wanted_steps": steps,
        "failed_steps": failed,
        "final_loss": final_loss(losses, steps),
        "unseen_loss": None if ended else _unseen(trainer),
        "kept_bytes": kept,
        "recorded_steps": curves.steps,
        "curves": curves.rows(),
    }


def course(arms, workload, text, request):
    """Runs from their beginning, each for itself."""
    return [_course(arm, workload, text, request["steps"]) for arm in arms]


MEASURES = {"steps": steps, "inference": inference, "memory": memory, "course": course}
