# SPDX-License-Identifier: Apache-2.0
"""The worker: one request, a JSON line on standard input; answers, JSON lines on standard output. What PyTorch prints goes to standard
error. The exit code is 0 whenever an answer was given.

    python -m normbench.models --about
    {"torch":"2.15.0","cuda":true,"gpu":"NVIDIA H100","python":"3.11.7"}, or {"missing":"why, and the mend"}

    {"measure":"steps"|"inference"|"memory"|"course","workload":"rnnsearch","round":0,"seed":"1","steps":300,"threads":1,
     "device":"cpu"|"cuda","launch_s":4,"text":"/path/text","kernels":"/path/libnormkernels.so","arms":[{"arm":"as it is called",..}]}

workloads.py has the keys of an arm; the parameters of a round are drawn by round + 1, `seed` is of the order of the arms. Answers:

    {"type":"alive"}      every 2 s in which processor time was taken
    {"type":"answer","status":"ok","torch":"2.15.0","device":"cpu","threads":1,"matmul":"highest","arms":[{"arm":..},..]}
    {"type":"answer","status":"skipped","reason":"what, and the mend"}

of steps and inference: "step":[s,..] by block, "forward","backward","update","loss", or the "reason" why an arm among others has none; of
memory: "peak_bytes","kept_bytes","parameter_bytes"; of a course: "loss":[..],"wanted_steps","failed_steps","final_loss","unseen_loss","kept_bytes","recorded_steps",
"curves":[{"place","gradient","std":[..]}] (measure.py). A value that is no number is null."""

import json
import math
import os
import platform
import sys
import threading
import time

LEAST = (2, 4)  # nn.RMSNorm, and autocast to f16 on a CPU
ALIVE_S, LEAST_TAKEN_S = 2, 0.02
USUAL = {"round": 0, "seed": "1", "steps": 0, "threads": 1, "device": "cpu", "launch_s": 1, "text": None, "kernels": ""}


class Skipped(Exception):
    """Why there is no measurement, in one sentence."""


def _torch():
    """The module; Skipped where it is missing or too old."""
    mend = "pip install torch, or set NORMBENCH_PYTHON to an interpreter that has it"
    try:
        import torch
    except Exception as error:  # as a library of CUDA's that is not there
        raise Skipped(f"{sys.executable} has no PyTorch ({error}): {mend}") from None
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < LEAST:
        raise Skipped(f"PyTorch {torch.__version__} of {sys.executable} is older than {LEAST[0]}.{LEAST[1]}: {mend}")
    return torch


def about():
    try:
        torch = _torch()
        gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else None
    except Exception as error:  # of a GPU, too, that others hold
        return {"missing": why(error)}
    return {"torch": torch.__version__, "cuda": gpu is not None, "gpu": gpu, "python": platform.python_version()}


def _cleaned(value):
    """Without numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _cleaned(each) for key, each in value.items()}
    return [_cleaned(each) for each in value] if isinstance(value, (list, tuple)) else value


class Speaker:
    """Writes lines, one at a time, and says by a thread that the process is alive."""

    def __init__(self, file):
        self.file, self.lock, self.done = file, threading.Lock(), threading.Event()

    def say(self, line):
        with self.lock:
            self.file.write(json.dumps(_cleaned(line), separators=(",", ":")) + "\n")
            self.file.flush()

    def _live(self):
        """Not while the process waits for what never comes: one that takes no processor time is ended as one that hangs."""
        taken = 0.0
        while not self.done.wait(ALIVE_S):
            before, taken = taken, time.process_time()
            if taken - before > LEAST_TAKEN_S:
                self.say({"type": "alive"})

    def __enter__(self):
        self.thread = threading.Thread(target=self._live, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def read(line):
    """A request with all its keys; Skipped where it is none."""
    try:
        given = json.loads(line)
    except ValueError as error:
        raise Skipped(f"the request is no JSON: {error}") from None
    if not isinstance(given, dict) or not isinstance(given.get("arms"), list) or not given["arms"]:
        raise Skipped("the request has no arms: a list of objects under 'arms'")
    for key in given:
        if key not in (*USUAL, "measure", "workload", "arms"):
            raise Skipped(f"the request has an unknown key '{key}'")
    return {**USUAL, **given}


def _text_or_none(path):
    from .data import Text

    try:
        return Text(path)
    except OSError as error:
        raise Skipped(str(error)) from None


def _device(torch, request):
    """Its name, where it is there."""
    if request["device"] == "cpu":
        return "cpu"
    if request["device"] != "cuda":
        raise Skipped(f"device '{request['device']}': cpu or cuda")
    if not torch.cuda.is_available():
        raise Skipped(f"PyTorch {torch.__version__} sees no GPU with CUDA: leave --device out, or install its driver and a build with CUDA")
    return torch.cuda.get_device_name(0)


def _measured(torch, request):
    """The answer to a request."""
    device = _device(torch, request)
    from . import measure, workloads

    if request.get("measure") not in measure.MEASURES:
        raise Skipped(f"measure '{request.get('measure')}': one of {', '.join(measure.MEASURES)}")
    torch.set_num_threads(max(1, request["threads"]))
    common = {"seed": request["round"] + 1, **{key: request[key] for key in ("device", "threads", "kernels")}}
    made = [workloads.complete(workloads.arm_of(fields, **common), request.get("workload")) for fields in request["arms"]]
    arms, workload = [arm for arm, _ in made], made[0][1]
    rows = measure.MEASURES[request["measure"]](arms, workload, _text_or_none(request["text"]), request)
    said = {"threads": torch.get_num_threads(), "matmul": torch.get_float32_matmul_precision()}
    return {"type": "answer", "status": "ok", "torch": torch.__version__, "device": device, **said, "arms": rows}


def why(error):
    """An exception as one sentence."""
    if isinstance(error, Skipped):
        return str(error)
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text:
        return f"PyTorch ran out of memory: a smaller batch or another machine ({text[:200]})"
    return f"PyTorch failed: {type(error).__name__}: {text[:400]}"


def answer(line):
    """To a request's line; never raises but for what ends the process."""
    try:
        request = read(line)
        return _measured(_torch(), request)
    except Exception as error:  # whatever a framework raises: the other claims go on
        return {"type": "answer", "status": "skipped", "reason": why(error)}


def main():
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if sys.argv[1:] == ["--about"]:
        Speaker(lines).say(about())
    elif sys.argv[1:]:
        sys.exit(f"normbench.models: '{sys.argv[1]}': --about, or a request on standard input")
    else:
        with Speaker(lines) as speaker:
            said = answer(sys.stdin.readline())
        speaker.say(said)
