# SPDX-License-Identifier: Apache-2.0
"""The models in PyTorch: the worker's protocol and the printed classes on stand-ins for PyTorch, which a CI has not; the rest where the
interpreter has it."""

import io
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = os.environ.get("NORMBENCH_PYTHON_PACKAGE", str(ROOT / "cmd/packaging/python/src"))
COUNTING = str(ROOT / "tests/python/counting")
KERNELS = os.environ.get("NORMBENCH_KERNELS") or str(pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build")) / "libnormkernels.so")
sys.path.insert(0, PACKAGE)
from normbench.models import bound  # noqa: E402
from normbench.models import worker as own  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
needs_torch = unittest.skipUnless(torch, f"{sys.executable} has no PyTorch: NORMBENCH_PYTHON names an interpreter that has it")
needs_kernels = unittest.skipUnless(os.path.exists(KERNELS), f"{KERNELS} is not built: make")


def python(*arguments, path=(), **options):
    """A process that finds the package, and before it modules of these folders."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, PACKAGE])}
    done = subprocess.run([sys.executable, "-B", *arguments], env=environment, capture_output=True, text=True, check=True, **options)
    return [json.loads(line) for line in done.stdout.splitlines()]


def worker(request, *arguments, path=()):
    """The lines that a worker says to a request."""
    return python("-m", "normbench.models", *arguments, path=path, input=json.dumps(request) + "\n")


def answer(measure="course", workload="tiny-transformer", steps=2, **request):
    return own.answer(json.dumps({"measure": measure, "workload": workload, "steps": steps, "kernels": KERNELS, **request}))


class Protocol(unittest.TestCase):
    """What is said where PyTorch is not as it is needed."""

    def said(self, module, request, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "torch.py").write_text(module)
            return worker(request, *arguments, path=[folder])[-1]

    def test_missing(self):
        missing = 'raise ImportError("none here")'
        self.assertRegex(self.said(missing, {}, "--about")["missing"], "no PyTorch .none here.: pip install torch, or set NORMBENCH_PYTHON")
        said = self.said(missing, {"measure": "course", "workload": "tiny-transformer", "arms": [{"norm": "none"}]})
        self.assertEqual((said["type"], said["status"]), ("answer", "skipped"))
        self.assertRegex(said["reason"], "no PyTorch")

    def test_too_old(self):
        self.assertRegex(self.said('__version__ = "2.3.1+cpu"', {}, "--about")["missing"], r"PyTorch 2\.3\.1\+cpu of .* is older than 2\.4")

    def test_any_failure_of_its_import_is_said(self):
        self.assertRegex(self.said('raise OSError("libcudart.so.12")', {}, "--about")["missing"], "no PyTorch .libcudart.so.12.: pip install")
        self.assertRegex(self.said('__version__ = "2.9.0"', {}, "--about")["missing"], "PyTorch failed: AttributeError: .*cuda")

    def test_alive_is_said_of_work_alone(self):
        speaker = own.Speaker(io.StringIO())
        speaker.done = unittest.mock.Mock(wait=unittest.mock.Mock(side_effect=[False, False, False, True]))
        with unittest.mock.patch("time.process_time", side_effect=[1.0, 1.0, 5.0]):
            speaker._live()
        self.assertEqual(speaker.file.getvalue().count("alive"), 2)

    def test_what_it_prints_goes_to_standard_error(self):
        module = 'import os\nprint("hello")\nos.write(1, b"hello")\n__version__ = "1.0"'
        self.assertIn("missing", self.said(module, {}, "--about"))

    def test_without_a_gpu(self):
        self.assertEqual(worker({}, "--about", path=[COUNTING])[-1]["cuda"], False)
        request = {"measure": "course", "workload": "tiny-transformer", "device": "cuda", "arms": [{"norm": "none"}]}
        self.assertRegex(
            worker(request, path=[COUNTING])[-1]["reason"], "PyTorch 2.15.0.counting sees no GPU with CUDA: leave --device out"
        )

    def test_requests_that_are_none(self):
        for request, reason in (([], "no arms"), ({"arms": []}, "no arms"), ({"arms": [{}], "threds": 1}, "unknown key 'threds'")):
            self.assertRegex(own.answer(json.dumps(request))["reason"], reason)
        self.assertRegex(own.answer("no JSON\n")["reason"], "no JSON")

    def test_numbers_that_are_none_are_null(self):
        self.assertEqual(own._cleaned({"loss": [1.5, math.nan, -math.inf], "n": 3}), {"loss": [1.5, None, None], "n": 3})

    def test_out_of_memory(self):
        self.assertRegex(own.why(MemoryError()), "ran out of memory: a smaller batch")
        self.assertRegex(own.why(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")), "ran out of memory")
        self.assertRegex(own.why(ValueError("two\nlines")), "PyTorch failed: ValueError: two lines$")


class Operations(unittest.TestCase):
    """What the printed classes call forward, on a PyTorch that counts."""

    @classmethod
    def setUpClass(cls):
        text = (
            "import json, torch\nfrom normbench.models import classes\n"
            "for name in ('LayerNorm', 'DebertaLayerNorm', 'RMSNorm', 'PartialRMSNorm', 'Centre', 'Scale'):\n"
            "    for dtype in ('f32', 'bf16'):\n"
            "        torch.calls.clear()\n"
            "        getattr(classes, name)(64, 1e-5)(torch.Tensor((8, 64), dtype))\n"
            "        print(json.dumps([name, dtype, torch.calls]))\n"
        )
        cls.calls = {(name, dtype): calls for name, dtype, calls in python("-c", text, path=[COUNTING])}

    def phases(self, op, root):
        kernel = bound.find(KERNELS, op, bound.FORWARD, "f32", "composed")
        call = bound.call_of(op, 8, 64, 1e-5, op == "layernorm")
        call.formula.root = root
        return bound.n_phases(kernel, call)

    @needs_kernels
    def test_as_many_as_our_composed_kernels(self):
        div_sqrt, rsqrt = 0, 2
        self.assertEqual(len(self.calls["RMSNorm", "f32"]), self.phases("rmsnorm", rsqrt))
        # x.var() is one call, which takes the mean anew; composed, a square and its mean of what is centred already
        self.assertEqual(len(self.calls["LayerNorm", "f32"]) + 1, self.phases("layernorm", div_sqrt))
        self.assertEqual(len(self.calls["DebertaLayerNorm", "f32"]), self.phases("layernorm", div_sqrt))

    def test_which(self):
        self.assertEqual(self.calls["RMSNorm", "f32"], ["pow", "mean", "add", "rsqrt", "mul", "mul"])
        self.assertEqual(self.calls["LayerNorm", "f32"], ["mean", "var", "sub", "add", "sqrt", "truediv", "mul", "add"])
        self.assertEqual(self.calls["PartialRMSNorm", "f32"], ["norm", "mul", "add", "truediv", "mul"])

    def test_halves_take_no_more_than_the_whole(self):
        for half in ("Centre", "Scale"):
            self.assertLess(len(self.calls[half, "f32"]), len(self.calls["LayerNorm", "f32"]))

    def test_casts_of_bf16(self):
        """The printed LayerNorm stays in bf16; the others go through f32 and back."""
        self.assertNotIn("cast", self.calls["LayerNorm", "bf16"])
        for name in ("RMSNorm", "DebertaLayerNorm"):
            self.assertEqual(self.calls[name, "bf16"].count("cast"), 2)


@needs_torch
class Refusals(unittest.TestCase):
    def reason(self, arm, workload="tiny-transformer", **request):
        return answer(workload=workload, arms=[arm], **request)["reason"]

    def test_words(self):
        self.assertRegex(self.reason({"norm": "rmsnrom"}), "norm='rmsnrom': one of none, layernorm")
        self.assertRegex(self.reason({"nrom": "rmsnorm"}), "no key 'nrom'")
        self.assertRegex(self.reason({"batch": -1}), "batch=-1: a number of 0 or more")
        self.assertRegex(self.reason({}, "minimind"), "no workload 'minimind': tiny-transformer")
        self.assertRegex(self.reason({}, measure="curse"), "measure 'curse': one of steps")
        self.assertRegex(self.reason({}, device="tpu"), "device 'tpu': cpu or cuda")
        self.assertRegex(self.reason({}, text="/nowhere"), "no text to train on: /nowhere")

    def test_what_a_model_cannot_do(self):
        self.assertRegex(self.reason({"norm": "layernorm"}, "transformer-base"), "place must be post")
        self.assertRegex(self.reason({"norm": "layernorm", "padding": "masked"}), "said of BatchNorm")
        self.assertRegex(self.reason({"norm": "batchnorm"}, "rnnsearch"), "running statistics of each step")
        self.assertRegex(self.reason({"norm": "prmsnorm", "style": "nn"}), "PyTorch .* has no module for")
        self.assertRegex(self.reason({"norm": "rmsnorm", "style": "ours"}, kernels="/nowhere.so"), "our kernels: /nowhere.so")
        self.assertRegex(answer("memory", arms=[{}, {}])["reason"], "memory is of one arm")
        with unittest.mock.patch("shutil.which", return_value=None):
            self.assertRegex(self.reason({"norm": "rmsnorm", "style": "compiled"}), "needs a C.. compiler on a CPU")


@needs_torch
class Sizes(unittest.TestCase):
    def test_models_are_those_of_the_lists(self):
        """A list of operations and a model of the same name have as many parameters and tokens, and the C side knows the same sizes."""
        from normbench.models import workloads

        known = (ROOT / "src/models/arm.c").read_text()
        for name, workload in workloads.WORKLOADS.items():
            place = "post" if name == "transformer-base" else "pre"
            arm, workload = workloads.complete(workloads.arm_of({"norm": "rmsnorm", "place": place}, device="meta"), name)
            self.assertIn(f'{{"{name}", {arm.layers}, {arm.batch}, {arm.sequence}, {arm.hidden},', known)
            path = ROOT / f"configs/models/{name}.json"
            if not path.exists():
                continue
            listed, sizes = json.loads(path.read_text()), [p.numel() for p in workloads.build(arm, workload).parameters()]
            self.assertEqual((sum(sizes), len(sizes)), (listed["parameters"], listed["tensors"]), name)
            self.assertEqual(arm.batch * (1 if name == "convpool" else arm.sequence), listed["tokens"], name)


@needs_torch
class Norms(unittest.TestCase):
    def outputs(self, norm, style, dtype):
        """y, and the gradients by x, gamma and beta, on rows that are not centred."""
        from normbench.models import classes, workloads

        arm = workloads.Arm(norm=norm, style=style, eps=1e-5, partial=0.25, kernels=KERNELS)
        module = classes.norm_of(arm, 48)
        generator = torch.Generator().manual_seed(1)
        for i, parameter in enumerate(module.parameters()):
            parameter.data.copy_((i == 0) + torch.randn(48, generator=generator) / 4)
        x = (torch.randn(5, 7, 48, generator=generator) + 0.5).to(dtype).requires_grad_()
        y = module(x)
        (y.float() * torch.randn(5, 7, 48, generator=generator)).sum().backward()
        return [y, x.grad, *(p.grad for p in module.parameters())]

    def assert_alike(self, ones, others, tolerance):
        for one, other in zip(ones, others):
            torch.testing.assert_close(one.float(), other.float(), rtol=tolerance, atol=tolerance)

    def test_styles_agree(self):
        for norm, styles in (("layernorm", ("nn", "deberta", "ours")), ("rmsnorm", ("nn", "ours"))):
            for style in styles:
                if style != "ours" or os.path.exists(KERNELS):
                    self.assert_alike(self.outputs(norm, "printed", torch.float32), self.outputs(norm, style, torch.float32), 2e-5)
                    self.assert_alike(self.outputs(norm, "printed", torch.bfloat16), self.outputs(norm, style, torch.bfloat16), 5e-2)

    def test_halves_make_the_whole(self):
        from normbench.models import classes

        x = torch.randn(4, 32, dtype=torch.float64) + 1
        whole = classes.Scale(32, 0, "none")(classes.Centre(32, 0, "none")(x))
        torch.testing.assert_close(whole, torch.nn.functional.layer_norm(x, (32,), eps=0))

    def test_partial_statistics_are_of_the_first_elements(self):
        from normbench.models import classes

        x = torch.randn(4, 32)
        expected = x / x[:, :8].pow(2).mean(-1, keepdim=True).sqrt()
        torch.testing.assert_close(classes.PartialRMSNorm(32, 0, partial=0.25)(x), expected)

    def test_masked_batchnorm_is_that_of_the_real_rows(self):
        from normbench.models import classes

        x, present = torch.randn(3, 4, 8), torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]]).float()
        for positions in (0, 4):
            rows = classes.Rows(positions)
            norm, rows.present = classes.BatchNorm(8, 1e-5, rows=rows), present
            y = norm(x)
            self.assertEqual(y[present == 0].abs().max(), 0)
            real = [(y[:, t], x[:, t], present[:, t]) for t in range(2)] if positions else [(y, x, present)]
            for out, given, there in real:
                flat = torch.nn.functional.batch_norm(given[there == 1], None, None, training=True)
                torch.testing.assert_close(out[there == 1], flat, rtol=1e-4, atol=1e-4)
        self.assertEqual(norm.running_mean.shape, (4, 8))


@needs_torch
class Courses(unittest.TestCase):
    def test_losses_are_those_of_the_framework_in_c(self):
        """First values, batches, models, clipping and updates are the same: so are the losses, but for the order of sums."""
        recorded = json.loads((ROOT / "tests/data/train_courses.json").read_text())
        for course in recorded["courses"]:
            request = {key: course[key] for key in ("workload", "round")}
            (arm,) = answer(steps=recorded["steps"], arms=[course["arm"]], text=str(ROOT / "LICENSE"), **request)["arms"]
            for step, (one, other) in enumerate(zip(arm["loss"], course["loss"])):
                self.assertAlmostEqual(one, other, delta=1e-5 * 4**step if "convpool" in course["workload"] else 2e-3, msg=str(course))
            if "convpool" not in course["workload"]:
                self.assertAlmostEqual(arm["unseen_loss"], course["unseen_loss"], delta=2e-3, msg=str(course))
            curves = {curve["place"] + " gradient" * curve["gradient"]: curve["std"] for curve in arm["curves"]}
            for place, std in course["curves"].items():
                for one, other in zip(curves[place], std):
                    self.assertAlmostEqual(one, other, delta=1e-3 * other, msg=f"{place} {course}")

    def test_every_model_learns(self):
        small = {
            "rnnsearch": (32, 4, 8, 0.01),
            "order-embedding": (64, 8, 5, 0.003),
            "attentive-reader": (32, 4, 16, 0.01),
            "transformer-base": (32, 2, 8, 0.01),
        }
        for workload, numbers in small.items():
            arm = {"norm": "rmsnorm", "place": "post" if workload == "transformer-base" else "pre"}
            sizes = dict(zip(("hidden", "batch", "sequence", "rate"), numbers))
            (arm,) = answer(workload=workload, steps=30, arms=[{**arm, **sizes}])["arms"]
            self.assertLess(arm["final_loss"], arm["loss"][0], workload)

    def test_half_precision(self):
        arms = [{"arm": dtype, "norm": "layernorm", "dtype": dtype} for dtype in ("f32", "f16", "bf16")]
        wide, *narrow = answer(steps=10, arms=arms)["arms"]
        for arm in narrow:
            self.assertEqual(arm["failed_steps"], 0)
            self.assertNotEqual(arm["final_loss"], wide["final_loss"])
            self.assertAlmostEqual(arm["final_loss"], wide["final_loss"], delta=0.01)

    def test_a_loss_that_is_no_number_ends_it(self):
        (line,) = (
            line
            for line in worker({"measure": "course", "workload": "tiny-transformer", "steps": 8, "arms": [{"rate": 1000, "clip": 0}]})
            if line["type"] == "answer"
        )
        (arm,) = line["arms"]
        self.assertEqual(arm["wanted_steps"], 8)
        self.assertIsNone(arm["loss"][-1])
        self.assertIsNone(arm["unseen_loss"])
        self.assertEqual(arm["final_loss"], arm["loss"][0])
        self.assertEqual(arm["failed_steps"], 8 - len(arm["loss"]) + 1)

    def test_rules(self):
        from normbench.models import measure

        self.assertEqual(sorted(measure.recorded_steps(300))[::10], [0, 299])
        self.assertEqual(len(measure.recorded_steps(300)), 11)
        self.assertEqual(measure.final_loss([float(i) for i in range(20)], 20), 18.5)
        self.assertEqual(measure.final_loss([7.0, 1.0], 20), 7)
        scale = measure.Scale("f16")
        scale.update(False)
        self.assertEqual(scale.value, 32768)
        for _ in range(2000):
            scale.update(True)
        self.assertEqual(scale.value, 65536)


@needs_torch
class Steps(unittest.TestCase):
    def test_arms_take_the_same_batches(self):
        arms = [{"arm": "a", "norm": "layernorm"}, {"arm": "b", "norm": "layernorm", "style": "nn"}]
        one, other = answer("steps", launch_s=0, arms=arms)["arms"]
        self.assertEqual(len(one["step"]), 2)
        for part in ("forward", "backward", "update"):
            self.assertTrue(all(0 < part_s < whole for part_s, whole in zip(one[part], one["step"])))
        for mine, its in zip(one["loss"], other["loss"]):
            self.assertAlmostEqual(mine, its, delta=1e-4)

    def test_what_compiles_is_compiled_before_it_is_timed(self):
        if not any(map(shutil.which, ("g++", "clang++", "c++"))):
            self.skipTest("no C++ compiler")
        from normbench.models import measure, workloads

        fields = [{"arm": norm, "norm": norm, "style": "compiled", "hidden": 32, "layers": 1} for norm in ("layernorm", "rmsnorm")]
        arms, graphs = [workloads.complete(workloads.arm_of(arm), "tiny-transformer") for arm in fields], []

        def once(trainer, batch):
            row = measure._timed(trainer, batch)
            graphs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
            return row

        text = own._text_or_none(None)
        rows = measure.steps([arm for arm, _ in arms], arms[0][1], text, {"seed": "1", "launch_s": 0}, once)
        self.assertEqual([len(row["step"]) for row in rows], [2, 2])
        self.assertEqual(len(graphs), 6)
        self.assertEqual(len(set(graphs[:2])), 2, "each is compiled in its first step")
        self.assertEqual(len(set(graphs[1:])), 1, "and in none after it")

    def test_an_arm_that_cannot_be_had_costs_the_others_nothing(self):
        with unittest.mock.patch("shutil.which", return_value=None):
            arms = [{"norm": "rmsnorm", "style": style} for style in ("compiled", "printed")]
            one, other = answer("steps", launch_s=0, arms=arms)["arms"]
            self.assertRegex(one["reason"], "needs a C.. compiler on a CPU")
            self.assertEqual(len(other["step"]), 2)
            self.assertRegex(answer("steps", launch_s=0, arms=arms[:1])["reason"], "needs a C.. compiler on a CPU")

    def test_inference_keeps_nothing(self):
        (arm,) = answer("inference", launch_s=0, arms=[{"norm": "rmsnorm"}])["arms"]
        self.assertEqual(arm["step"], arm["forward"])

    def test_what_is_kept(self):
        """The printed LayerNorm keeps a tensor more for each of the nine norms than the printed RMSNorm: its input, centred."""
        kept = [answer("memory", arms=[{"norm": norm}])["arms"][0]["kept_bytes"] for norm in ("none", "rmsnorm", "layernorm")]
        self.assertEqual(kept, sorted(kept))
        self.assertGreaterEqual(kept[2] - kept[1], 9 * 4 * 64 * 64 * 4)

    def test_norms_alone(self):
        arms = [{"norm": "layernorm", "style": style, "hidden": 32, "sequence": 8, "layers": 3} for style in ("printed", "nn")]
        one, other = (answer("memory", "norm", arms=[arm])["arms"][0] for arm in arms)
        self.assertEqual(other["kept_bytes"], 2 * 8 * 32 * 4 + 3 * 2 * 8 * 4)  # x, dy; mean and rstd of each norm
        self.assertGreater(one["kept_bytes"], 3 * 8 * 32 * 4)
        self.assertRegex(answer("steps", "norm", arms=[{"norm": "none"}])["reason"], "needs a norm")

    def test_layers_of_a_large_model(self):
        arms = [
            {"norm": "rmsnorm", "style": style, "hidden": 64, "sequence": 8, "layers": 1, "dtype": "bf16"} for style in ("printed", "nn")
        ]
        one, other = answer("steps", "llama-layer", launch_s=0, arms=arms)["arms"]
        self.assertAlmostEqual(one["loss"][0], other["loss"][0], delta=1e-3)


if __name__ == "__main__":
    unittest.main()
