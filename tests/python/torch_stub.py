#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""In the place of an interpreter with PyTorch (NORMBENCH_PYTHON): speaks the protocol of `python -m normbench.models`, with figures
that follow from the arm's words, and misbehaves as TORCH_STUB says: several words, of which ON=NORM keeps the rest to requests with an
arm of that norm. Each request is appended to $TORCH_STUB_LOG."""

import json
import os
import signal
import struct
import sys
import time

words = os.environ.get("TORCH_STUB", "").split()
LOSSES = {"none": 3.0, "layernorm": 2.0, "rmsnorm": 2.02, "batchnorm": 2.5}


def say(line):
    print(json.dumps(line), flush=True)


def be_silent():
    """As in tests/plugins/silent.h."""
    page = os.environ.get("NORMBENCH_PLAYED_PAGE")
    for who in (os.getpid(), os.getpgrp()) if page else ():
        fd = os.open(page, os.O_WRONLY)
        os.pwrite(fd, struct.pack("=i", who), 8 + 4 * (who % 1024))
        os.close(fd)


def misbehave():
    if "prints" in words:
        print("Loading extension module ...\n{ no JSON\n[1, 2]\n{}\n" + "x" * 100000, flush=True)
        print("a warning", file=sys.stderr, flush=True)
    if "forks" in words and os.fork() == 0:
        time.sleep(1000)
    if "hangs" in words:
        be_silent()
        time.sleep(1000)
    if "crashes" in words:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "exits" in words:
        sys.exit(3)
    if "memory" in words:
        say({"type": "answer", "status": "skipped", "reason": "PyTorch ran out of memory: a smaller batch or another machine"})
        sys.exit()


def arm_of(request, arm):
    step = 0.010 if arm["norm"] == "layernorm" else 0.008
    if request["measure"] in ("steps", "inference"):
        drift = [1.0, 3.0, 1.5, 1.0 + request["round"]]
        parts = {"step": 1, "forward": 0.25, "backward": 0.5, "update": 0.25}
        return {part: [share * step * d for d in drift] for part, share in parts.items()} | {"loss": [2.0] * 4}
    if request["measure"] == "memory":
        return {"peak_bytes": 1000 if arm["norm"] == "none" else 1200, "kept_bytes": 500, "parameter_bytes": 300}
    loss, n = LOSSES[arm["norm"]] * (1 + 0.1 * request["round"]), request["steps"]
    curves = [{"place": f"layer{i}.attention.input", "gradient": g, "std": [1.0 + i, 2.0]} for i in range(2) for g in (False, True)]
    return {"loss": [loss] * n, "wanted_steps": n, "failed_steps": 0, "final_loss": loss, "unseen_loss": loss, "kept_bytes": 500,
            "recorded_steps": [0, n - 1], "curves": curves}


def main():
    if sys.argv[-1] == "--about":
        missing = [word for word in words if word.startswith("missing")]
        gpu = "NVIDIA H100" if "cuda" in words else None
        found = {"torch": "2.15.0", "cuda": bool(gpu), "gpu": gpu, "python": "3.11.7"}
        say({"missing": "python has no PyTorch: pip install torch"} if missing else found)
        return
    text = sys.stdin.readline()
    request = json.loads(text)
    with open(os.environ.get("TORCH_STUB_LOG", os.devnull), "a", encoding="utf-8") as log:
        log.write(text)
    on = [word[3:] for word in words if word.startswith("ON=")]
    if not on or any(arm["norm"] in on for arm in request["arms"]):
        misbehave()
    say({"type": "alive"})
    device = "cpu" if request["device"] == "cpu" else "NVIDIA H100"
    arms = [{"arm": arm["arm"], **arm_of(request, arm)} for arm in request["arms"]]
    say({"type": "answer", "status": "ok", "torch": "2.15.0", "device": device, "arms": arms})
    if "lingers" in words:
        time.sleep(1000)


main()
