# SPDX-License-Identifier: Apache-2.0
"""Where the program is, how it is run, and its results."""

import json
import os
import pathlib
import subprocess
import sys


class Error(Exception):
    """What cannot be done, and what to do about it."""


def not_installed(package, name):
    """An Error for where a package is needed that this interpreter does not have."""
    where = f"{sys.executable}: pip install {name}, or set NORMBENCH_PYTHON to an interpreter that has it"
    return Error(f"{package} is not installed in {where}")


def program():
    """The path of the program: $NORMBENCH, else the wheel's, that of the tree, or the installed one, in this order."""
    named = os.environ.get("NORMBENCH")
    if named:
        return named
    package = pathlib.Path(__file__).resolve().parent
    places = [
        "program/bin/normbench",
        "../../../../../build/normbench",  # from cmd/packaging/python/src/normbench
        "../../../../bin/normbench",  # from share/normbench/python/normbench
    ]
    for place in places:
        path = (package / place).resolve()
        if os.access(path, os.X_OK) and path.is_file():
            return str(path)
    raise Error(f"the program is not beside {package}; build it (make), or set NORMBENCH to its path")


def environment(path=None):
    """Of the program: kernels in Python run in this interpreter, unless NORMBENCH_PYTHON names another. `path` is the sys.path that a
    kernel's module is found by."""
    result = dict(os.environ)
    result.setdefault("NORMBENCH_PYTHON", sys.executable)
    if path is not None:
        result["NORMBENCH_SYS_PATH"] = json.dumps([entry or os.getcwd() for entry in path])
    return result


def run(*arguments, path=None, **options):
    """Runs the program with these arguments: a subprocess.CompletedProcess with its output as text. A mistake of usage (exit code 2) is an
    Error with the program's own words; options are those of subprocess.run."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    done = subprocess.run([program(), *map(str, arguments)], env=environment(path), **options)
    if done.returncode == 2:
        raise Error((done.stderr or "").strip() or f"normbench {arguments[0]}: exit code 2")
    return done


def _flat(record, prefix=""):
    """Nested fields as one level, with dots: {"accuracy": {"max_ulp": 1}} as {"accuracy.max_ulp": 1}."""
    result = {}
    for key, value in record.items():
        if isinstance(value, dict) and value:
            result.update(_flat(value, f"{prefix}{key}."))
        else:
            result[prefix + key] = value
    return result


def records(folder):
    """The records of a folder of results (`normbench run --out`), as they are in its results.json."""
    path = pathlib.Path(folder)
    path = path / "results.json" if path.is_dir() else path
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        cut_off = (path.parent / "journal.jsonl").exists()
        raise Error(f"{path}: is not there{'; `normbench report DIR` writes it of a run that was cut off' if cut_off else ''}") from None
    except (OSError, ValueError) as error:
        raise Error(f"{path}: {error}") from None
    if not isinstance(document, dict) or "records" not in document:
        raise Error(f"{path}: no results of normbench: it has no 'records'")
    return document["records"]


def load(folder, *, frame=None):
    """The records of a folder of results, one row each: a pandas.DataFrame where pandas is there (frame=True insists on it), else, or with
    frame=False, a list of dicts. Nested fields have dots in their names: times.median_ns, accuracy.max_ulp."""
    rows = [_flat(record) for record in records(folder)]
    if frame is False:
        return rows
    try:
        import pandas
    except ImportError:
        if frame:
            raise Error("load(frame=True): pandas is not installed: pip install pandas") from None
        return rows
    return pandas.DataFrame(rows)
