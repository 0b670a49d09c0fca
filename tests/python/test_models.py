# SPDX-License-Identifier: Apache-2.0
"""The models in PyTorch: the worker's protocol without PyTorch; the rest where NORMBENCH_PYTHON has it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = os.environ.get("NORMBENCH_PYTHON_PACKAGE", str(ROOT / "cmd/packaging/python/src"))
sys.path.insert(0, PACKAGE)
from normbench.models import worker as own  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
needs_torch = unittest.skipUnless(torch, f"{sys.executable} has no PyTorch: NORMBENCH_PYTHON names an interpreter that has it")


def worker(request, *arguments, path=()):
    """The lines that a worker says to a request, with these folders before the package."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, PACKAGE])}
    line = request if isinstance(request, str) else json.dumps(request) + "\n"
    command = [sys.executable, "-B", "-m", "normbench.models", *arguments]
    done = subprocess.run(command, input=line, env=environment, capture_output=True, text=True, check=True)
    return [json.loads(said) for said in done.stdout.splitlines()]


class WithoutTorch(unittest.TestCase):
    """A folder whose torch is not what is needed stands before the real one."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def said(self, module, request, *arguments):
        (pathlib.Path(self.folder.name) / "torch.py").write_text(module)
        return worker(request, *arguments, path=[self.folder.name])[-1]

    def test_missing(self):
        missing = 'raise ImportError("none here")'
        self.assertRegex(self.said(missing, "", "--about")["missing"], "no PyTorch .none here.: pip install torch, or set NORMBENCH_PYTHON")
        answer = self.said(missing, {"measure": "course", "workload": "tiny-transformer", "arms": [{"norm": "none"}]})
        self.assertEqual((answer["type"], answer["status"]), ("answer", "skipped"))
        self.assertRegex(answer["reason"], "no PyTorch")

    def test_too_old(self):
        self.assertRegex(self.said('__version__ = "2.3.1+cpu"', "", "--about")["missing"], r"PyTorch 2\.3\.1\+cpu of .* is older than 2\.4")

    def test_requests_that_are_none(self):
        for request, reason in (("no JSON\n", "no JSON"), ({"arms": []}, "no arms"), ({"arms": [{}], "threds": 1}, "unknown key 'threds'")):
            self.assertRegex(worker(request)[-1]["reason"], reason)


@needs_torch
class Refusals(unittest.TestCase):
    def reason(self, arm, workload="tiny-transformer", **request):
        return own.answer(json.dumps({"measure": "course", "steps": 1, "workload": workload, "arms": [arm], **request}))["reason"]

    def test_words(self):
        self.assertRegex(self.reason({"norm": "rmsnrom"}), "norm='rmsnrom': one of none, layernorm")
        self.assertRegex(self.reason({"nrom": "rmsnorm"}), "no key 'nrom'")
        self.assertRegex(self.reason({"batch": -1}), "batch=-1: a number of 0 or more")
        self.assertRegex(self.reason({}, "minimind"), "no workload 'minimind': tiny-transformer")
        self.assertRegex(self.reason({}, measure="curse"), "measure 'curse': one of steps")
        self.assertRegex(self.reason({}, device="tpu"), "device 'tpu': cpu or cuda")

    def test_what_a_model_cannot_do(self):
        self.assertRegex(self.reason({"norm": "layernorm"}, "transformer-base"), "place must be post")
        self.assertRegex(self.reason({"norm": "layernorm", "padding": "masked"}), "said of BatchNorm")
        self.assertRegex(self.reason({"norm": "prmsnorm", "style": "nn"}), "PyTorch .* has no module for")
        self.assertRegex(self.reason({"norm": "rmsnorm", "style": "ours"}, kernels="/nowhere.so"), "our kernels: /nowhere.so")


if __name__ == "__main__":
    unittest.main()
