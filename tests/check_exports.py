#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads exports as strictly as the strictest of their readers.

usage: check_exports.py FORMAT FILE...    FORMAT: bencher, benchmark_action, junit
Exit: 0, 1 when anything is wrong."""
import json
import math
import re
import sys
import xml.etree.ElementTree as ElementTree

wrong = []


def expect(condition, message):
    if not condition:
        wrong.append(message)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def refuse_constant(name):
    raise ValueError(name + " is not JSON")


def no_key_twice(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("a key twice")
    return dict(pairs)


def load(path):
    return json.loads(open(path, encoding="utf-8").read(), parse_constant=refuse_constant, object_pairs_hook=no_key_twice)


def bencher(path):
    """Benchmark -> measure -> value and bounds, numbers all; a name of at most 1024 bytes."""
    for name, measures in load(path).items():
        expect(name.strip() == name and 0 < len(name.encode()) <= 1024, f"name '{name}'")
        expect(isinstance(measures, dict) and measures, f"{name}: no measures")
        for measure, metric in measures.items():
            expect(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", measure) and len(measure) <= 64, f"measure '{measure}'")
            expect("value" in metric and set(metric) <= {"value", "lower_value", "upper_value"}, f"{name}: {metric}")
            expect(all(is_number(value) for value in metric.values()), f"{name}: {measure} {metric}")
            low, high = (metric.get(key, metric["value"]) for key in ("lower_value", "upper_value"))
            expect(low <= metric["value"] <= high, f"{name}: {measure} is outside its bounds: {metric}")


def benchmark_action(path):
    """What github-action-benchmark's extractCustomBenchmarkResult() takes: a list of name, unit, value, and texts range and extra."""
    lines = load(path)
    expect(isinstance(lines, list), "not a list")
    names = [line["name"] for line in lines]
    expect(len(set(names)) == len(names), "a name twice")
    for line in lines:
        expect({"name", "unit", "value"} <= set(line) <= {"name", "unit", "value", "range", "extra"}, f"{line}")
        expect(is_number(line["value"]) and line["value"] > 0, f"{line['name']}: value {line['value']}")
        expect(all(isinstance(line[key], str) and line[key] for key in set(line) - {"value"}), f"{line}")
    print(f"{len(lines)} lines")


ATTRIBUTES = {"testsuites": {"name", "time", "tests", "failures", "disabled", "errors"},
              "testsuite": {"name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname",
                            "id", "package"},
              "properties": set(), "property": {"name", "value"},
              "testcase": {"name", "assertions", "time", "classname", "status"},
              "failure": {"type", "message"}, "skipped": {"message"}, "system-out": set()}
ORDER = {"testsuites": ["testsuite"], "testsuite": ["properties", "testcase"], "properties": ["property"],
         "testcase": ["skipped", "failure", "system-out"]}


def junit_element(element):
    expect(element.tag in ATTRIBUTES, f"<{element.tag}>")
    extra = set(element.attrib) - ATTRIBUTES.get(element.tag, set())
    expect(not extra, f"<{element.tag}> with {extra}")
    places = [ORDER.get(element.tag, []).index(child.tag) if child.tag in ORDER.get(element.tag, []) else -1 for child in element]
    expect(-1 not in places and places == sorted(places), f"<{element.tag}> holds {[child.tag for child in element]}")
    for child in element:
        junit_element(child)


def junit(path):
    """The elements, attributes and order that the schema of Jenkins' xUnit plugin allows; counts that agree with the cases."""
    root = ElementTree.parse(path).getroot()
    expect(root.tag == "testsuites" and len(root) == 1, "not one test suite")
    junit_element(root)
    suite = root[0]
    cases = suite.findall("testcase")
    for name, count in (("tests", len(cases)), ("failures", len(suite.findall("testcase/failure"))), ("errors", 0),
                        ("skipped", len(suite.findall("testcase/skipped")))):
        expect(suite.get(name) == str(count), f"{name} is {suite.get(name)}, and there are {count}")
    for case in cases:
        expect(case.get("name") and case.get("classname"), "a case without a name")
        expect(len(case.findall("failure")) + len(case.findall("skipped")) <= 1, f"{case.get('name')}: failed and skipped")
    if suite.get("timestamp"):
        expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp")), "timestamp")
    print(f"{len(cases)} cases, {suite.get('failures')} failures, {suite.get('skipped')} skipped")


def main():
    readers = {"bencher": bencher, "benchmark_action": benchmark_action, "junit": junit}
    if len(sys.argv) < 3 or sys.argv[1] not in readers:
        sys.exit(__doc__)
    for path in sys.argv[2:]:
        try:
            readers[sys.argv[1]](path)
        except (KeyError, TypeError, ValueError, ElementTree.ParseError) as error:
            wrong.append(f"{path}: {type(error).__name__} {error}")
    for line in wrong[:30]:
        print(line, file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
