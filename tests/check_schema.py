#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Validates runs against the published schemas, with a validator that is not ours (Debian's python3-jsonschema).

usage: check_schema.py SCHEMA_DIR [RUN_DIR|CLAIM.json|MODEL.json...]
Checks the schemas themselves, each CLAIM.json (a claim, or a model below a folder models/; comments taken away), then every file of DOCUMENTS and every line of journal.jsonl, and of samples.jsonl where trials.json
is, in each RUN_DIR: valid JSON
without the NaN and Infinity that Python would let pass, no key twice, valid by its schema, with sums that fit. Exit: 0, 1 when anything is wrong, 77
without the validator."""
import json
import os
import pathlib
import re
import sys
import urllib.parse

from support import sums

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed", file=sys.stderr)
    sys.exit(77)


DOCUMENTS = {"results.json": "results.schema.json", "stress.json": "stress.schema.json", "gate.json": "gate.schema.json",
             "comparison.json": "compare.schema.json", "calibration.json": "calibration.schema.json",
             "trials.json": "trials.schema.json", "claims.json": "claims.schema.json", "tuning.json": "tuning.schema.json", "peers.json": "peers.schema.json",
             "step.json": "step.schema.json"}
BASE = "https://normbench.invalid/schema/"  # absolute, so that any validator resolves references; .invalid is nobody's
STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S)


def refuse_constant(name):
    raise ValueError(name + " is not JSON")


def no_key_twice(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("a key twice among " + ", ".join(sorted(names)))
    return dict(pairs)


def parse(text):
    return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=no_key_twice)


def described(schema, place, wrong):
    """Every property that a schema names must say what it is, itself or where it refers to."""
    if isinstance(schema, dict):
        for name, value in schema.get("properties", {}).items() if isinstance(schema.get("properties"), dict) else []:
            conditional = place.endswith(("/if", "/then", "/else"))
            if not conditional and not {"description", "$ref", "properties", "items", "const", "enum", "oneOf"} & set(value):
                wrong.append(f"{place}/{name}: no description")
        for name, value in schema.items():
            described(value, f"{place}/{name}", wrong)
    elif isinstance(schema, list):
        for i, value in enumerate(schema):
            described(value, f"{place}/{i}", wrong)


class Schemas:
    def __init__(self, folder):
        self.store, self.links, self.wrong = {}, {}, []
        for path in sorted(pathlib.Path(folder).glob("*.schema.json")):
            schema = parse(path.read_text())
            jsonschema.Draft202012Validator.check_schema(schema)
            described(schema, path.name, self.wrong)
            if schema["$id"] != BASE + path.name:
                self.wrong.append(f"{path.name}: its $id is not {BASE}{path.name}")
            self.store[BASE + path.name] = schema

    def find(self, reference):
        """What a reference refers to, and the schema that it stands in."""
        name, _, pointer = reference.partition("#")
        node = self.store[name]
        for part in pointer.split("/")[1:]:
            node = node[part]
        return node, name

    def linked(self, node, name):
        """A copy in which every reference is the very object that it refers to: validators look references up again for each value,
        which takes most of their time."""
        if isinstance(node, list):
            return [self.linked(item, name) for item in node]
        if not isinstance(node, dict):
            return node
        if id(node) in self.links:
            return self.links[id(node)]
        copy = self.links[id(node)] = {}
        copy.update((key, self.linked(value, name)) for key, value in node.items() if key not in ("$id", "$ref"))
        if "$ref" in node:
            copy["allOf"] = copy.get("allOf", []) + [self.linked(*self.find(urllib.parse.urljoin(name, node["$ref"])))]
        return copy

    def validator(self, name):
        return jsonschema.Draft202012Validator(self.linked(self.store[BASE + name], BASE + name))

    def check(self, validator, text, place):
        try:
            document = parse(text)
        except ValueError as error:
            self.wrong.append(f"{place}: {error}")
            return
        for error in validator.iter_errors(document):
            at = "/".join(str(part) for part in error.absolute_path)
            self.wrong.append(f"{place}: {at}: {error.message[:300]}")

    def check_claim(self, path):
        text = STRING_OR_COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else " ", pathlib.Path(path).read_text())
        self.check(self.validator("model.schema.json" if "/models/" in str(path) else "claim.schema.json"), text, path)

    def check_run(self, folder):
        documents = [name for name in DOCUMENTS if os.path.exists(os.path.join(folder, name))]
        lines = {"journal.jsonl": "journal.schema.json"}
        if "trials.json" in documents:
            lines["samples.jsonl"] = "samples.schema.json"
        lines = {name: schema for name, schema in lines.items() if os.path.exists(os.path.join(folder, name))}
        if not documents and not lines:
            self.wrong.append(f"{folder}: holds nothing that a schema describes")
        for name in documents:
            path = os.path.join(folder, name)
            text = pathlib.Path(path).read_text()
            self.check(self.validator(DOCUMENTS[name]), text, path)
            for part in sums.parts(text) if '"sum":' in text else []:
                if part.get("sum") != sums.sum_of(part):
                    self.wrong.append(f"{path}: the sum of {part.get('key', 'the document')} does not fit")
        for name, schema in lines.items():
            path, validator = os.path.join(folder, name), self.validator(schema)
            for number, line in enumerate(pathlib.Path(path).read_text().split("\n")[:-1], 1):
                self.check(validator, line, f"{path}:{number}")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    schemas = Schemas(sys.argv[1])
    if not schemas.store:
        schemas.wrong.append(f"{sys.argv[1]}: no schema in it")
    for argument in sys.argv[2:]:
        if argument.endswith(".json"):
            schemas.check_claim(argument)
        else:
            schemas.check_run(argument)
    for line in schemas.wrong[:50]:
        print(line, file=sys.stderr)
    sys.exit(1 if schemas.wrong else 0)


main()
