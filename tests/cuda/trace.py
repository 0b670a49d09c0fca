#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows one thread of a device function through its machine code (SASS of sm_90, as cuobjdump -sass prints it): how many instructions it executes, and
how many bytes it has asked for when it first waits for any of them.

    trace.py FILE.sass FUNCTION STRUCT THREADS BLOCKS NAME=VALUE..     by name; STRUCT: of args.h, NAME: a member of it, or team.group

Tensors are at addresses that no one else has and read as 1.0; what the thread wrote to shared memory reads as that, what others wrote as 1.0. Whose load an
instruction waits for stands in its control bits: the scoreboard that it sets (110 to 112), those that it waits for (116 to 121). An instruction that is
not known is an error that names it: then this has to learn it."""
import collections
import functools
import math
import os
import re
import struct
import sys

ARGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../kernels/cuda/args.h")
FIRST_ARGUMENT = 0x210  # in the constant bank of sm_90
WORD, ONES = 0xFFFFFFFF, 0x3F803F80  # two bf16 of 1.0, and nearly an f32
Instruction = collections.namedtuple("Instruction", "at predicate name mods operands stall sets waits")


# ---- what is read -----------------------------------------------------------------------------------------------------------

def texts_of(sass):
    """The code's text by function."""
    _, *parts = re.split(r"Function : (\S+)", sass)
    return dict(zip(parts[::2], parts[1::2]))


def code_of(text):
    """Instructions: of each the text and, in the second line, the control bits."""
    pattern = r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s+/\* 0x[0-9a-f]{16} \*/\s+/\* 0x([0-9a-f]{16}) \*/"
    return [instruction(int(at, 16), one, int(high, 16)) for at, one, high in re.findall(pattern, text)]


def instruction(at, text, high):
    predicate = None
    if text.startswith("@"):
        predicate, text = text[1:].split(None, 1)
    name, _, rest = text.partition(" ")
    operands = [o.strip().replace(".reuse", "") for o in re.split(r",(?![^\[]*\])", rest)] if rest else []
    name, *mods = name.split(".")
    return Instruction(at, predicate, name, mods, operands, high >> 41 & 15, high >> 46 & 7, high >> 52 & 63)


def members_of(text, name):
    """(member, bytes) in order, of a struct of args.h; members of structs within have a dot."""
    body = re.search(r"struct %s \{(.*?)\n\};" % name, text, re.S).group(1)
    for kind, names in re.findall(r"(?:const )?(struct \w+|\w+) ([^;{}]*);", re.sub(r"/\*.*?\*/", "", body, flags=re.S)):
        for one in names.split(","):
            member, count = re.match(r"[ *]*(\w+)(?:\[(\w+)\])?", one).groups()
            for i in range(int(count or 1)):
                label = "%s[%d]" % (member, i) if count else member
                if kind.startswith("struct"):
                    yield from (("%s.%s" % (label, m), n) for m, n in members_of(text, kind.split()[1]))
                else:
                    yield label, 8 if "*" in one or kind in ("int64_t", "double", "size_t") else 4


def constants(name, values, threads, blocks):
    """The constant bank of a launch: its sizes, then the struct."""
    bank, at = {0: threads, 4: 1, 8: 1, 0xC: blocks, 0x10: 1, 0x14: 1}, FIRST_ARGUMENT
    with open(ARGS) as f:
        members = list(members_of(f.read(), name))
    unknown = set(values) - {m for m, _ in members}
    if unknown:
        raise KeyError("struct %s has no %s" % (name, ", ".join(sorted(unknown))))
    for member, size in members:
        at += -at % size
        value = values.get(member, 0)
        value = bits_of(value) if isinstance(value, float) else value
        for i in range(0, size, 4):
            bank[at + i] = value >> 8 * i & WORD
        at += size
    return bank


# ---- numbers ------------------------------------------------------------------------------------------------------------------

def bits_of(value):
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


def float_of(bits):
    return struct.unpack("<f", struct.pack("<I", bits & WORD))[0]


def signed(value, bits=32):
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


COMPARES = {"LT": lambda a, b: a < b, "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b, "EQ": lambda a, b: a == b,
            "NE": lambda a, b: a != b}
COMBINES = {"AND": lambda a, b: a and b, "OR": lambda a, b: a or b, "XOR": lambda a, b: a != b}


class Thread:
    def __init__(self, code, bank, thread=37, block=5):
        self.code, self.bank, self.memory = code, bank, {}
        self.registers, self.predicates = collections.defaultdict(int), collections.defaultdict(bool)
        self.special = {"SR_TID.X": thread % bank[0], "SR_CTAID.X": block, "SR_LANEID": thread % 32}
        self.log = []  # of (instruction, is it done or predicated off)

    def run(self, most=400000):
        at, calls, places = 0, [], {c.at: i for i, c in enumerate(self.code)}
        while len(self.log) < most:
            c = self.code[at]
            does = c.predicate is None or self.is_set(c.predicate)
            self.log.append((c, does))
            at += 1
            if not does:
                continue
            if c.name == "EXIT":
                return self
            if c.name in ("BRA", "CALL") and "DIV" not in c.mods:
                if c.name == "CALL":
                    calls.append(at)
                if all(self.is_set(p) for p in c.operands[:-1]):
                    at = places[int(c.operands[-1].strip("`()"), 16)]
            elif c.name == "RET":
                at = calls.pop()
            elif c.name != "BRA":
                self.step(c)
        raise ValueError("does not end after %d instructions" % most)

    def step(self, c):
        """Uniform instructions (U...) are as those of a thread."""
        name = c.name if c.name in NOTHING else c.name[1:] if c.name[1:] in KNOWN and c.name[0] == "U" else c.name
        if name in NOTHING:
            return
        try:
            KNOWN[name](self, c.mods, c.operands)
        except (ValueError, IndexError, KeyError, AttributeError) as error:
            raise NotImplementedError("%#x: %s %s: %r" % (c.at, ".".join([c.name, *c.mods]), ", ".join(c.operands), error)) from error

    # operands

    def is_set(self, p):
        value = p.strip("!") in ("PT", "UPT") or self.predicates[p.strip("!")]
        return value != p.startswith("!")

    def set_predicate(self, p, value):
        self.predicates[p] = bool(value)
        self.predicates["PT"] = self.predicates["UPT"] = True

    def value(self, text, is_float=False):
        if text in self.registers:
            return self.registers[text]
        inner, sign = taken_apart(text)
        value = self.bare(inner, is_float)
        if "|" in text:
            value &= 0x7FFFFFFF
        if text.startswith("~"):
            value = ~value & WORD
        return value if not sign else value ^ 0x80000000 if is_float else -value & WORD

    def bare(self, text, is_float):
        if text[0] in "RU":
            return self.registers[text]
        if text.startswith("c["):
            return self.bank.get(self.address(text[text.rindex("[") + 1:-1]), 0)
        if is_float and not text.startswith(("0x", "-0x")):
            return 0x7FFFFFFF if "NAN" in text else bits_of(float(text))
        return 0 if text == "SRZ" else int(text, 0) & WORD

    def floats(self, *texts):
        return [float_of(self.value(t, True)) for t in texts]

    def wide(self, text):
        text = text.replace(".64", "")
        if text in ("RZ", "URZ"):
            return 0
        if text.startswith("c["):
            at = self.address(text[text.rindex("[") + 1:-1])
            return self.bank.get(at, 0) | self.bank.get(at + 4, 0) << 32
        return self.registers[text] | self.registers[after(text, 1)] << 32 if text.startswith(("R", "U")) else int(text, 0) & (1 << 64) - 1

    def address(self, text):
        total = 0
        for part in text.strip("[]").split("+"):
            scale = re.search(r"\.X(\d+)$", part)
            if part.endswith(".64"):
                total += self.wide(part)
            elif part.startswith(("R", "U")):
                total += self.value(part.split(".")[0]) * int(scale.group(1) if scale else 1)
            elif part:
                total += int(part, 16)
        return total

    def put(self, target, value):
        if target not in ("RZ", "URZ"):
            self.registers[target.split(".")[0]] = value & WORD

    def put_wide(self, target, value):
        self.put(target, value)
        if target not in ("RZ", "URZ"):
            self.put(after(target, 1), value >> 32)

    def put_float(self, target, value):
        self.put(target, bits_of(value))


@functools.lru_cache(None)
def taken_apart(text):
    """An operand without what changes its value, and whether that is a minus."""
    sign = re.match(r"-(?![0-9.]|0x)", text) is not None
    inner = text.strip("-~|") if sign or text[0] in "~|" else text
    return re.sub(r"\.(H[01]_H[01]|64|U16|X\d+|U32|B\d)", "", inner), sign


@functools.lru_cache(None)
def after(register, n):
    return re.sub(r"\d+", lambda m: str(int(m.group()) + n), register)


# ---- what instructions do ------------------------------------------------------------------------------------------------------
# Functions of the thread, the modifiers, and the operands, the first of which is what is written.

def is_predicate(text):
    return re.match(r"U?P(\d|T)$", text) is not None


def carried(operands):
    """The predicate that takes the carry, or None; then what is written, and the sources."""
    target, *rest = operands
    return (rest[0], target, rest[1:]) if is_predicate(rest[0]) else (None, target, rest)


def add3(t, mods, operands):
    carry, target, sources = carried(operands)
    if sources and is_predicate(sources[0]):
        sources = sources[1:]  # a second carry
    total = sum(t.value(s) for s in sources[:3])
    if "X" in mods:
        total += sum(t.is_set(p) for p in sources[3:])
    elif carry:  # the carry of a - 0
        total += sum(s.startswith("-") and t.value(s) == 0 for s in sources[:3]) << 32
    if carry:
        t.set_predicate(carry, total >> 32)
    t.put(target, total)


def multiply(t, mods, operands):
    carry, target, (a, b, c, *more) = carried(operands)
    x, y = t.value(a), t.value(b)
    if ("WIDE" in mods or "HI" in mods) and "U32" not in mods:
        x, y = signed(x), signed(y)
    if "WIDE" in mods:
        t.put_wide(target, x * y + t.wide(c))
    elif "HI" in mods:
        t.put(target, x * y + t.wide(c) >> 32)
    else:
        t.put(target, x * y + t.value(c) + (t.is_set(more[0]) if "X" in mods else 0))


def shifted_add(t, mods, operands):
    carry, target, (a, b, *rest) = carried(operands)
    if "HI" in mods:
        low, shift = t.value(a), t.value(rest[1] if len(rest) > 1 and not is_predicate(rest[1]) else rest[0])
        high = t.value(rest[0]) if len(rest) > 1 and not is_predicate(rest[1]) else 0
        wide = signed(low) << shift if "SX32" in mods else (low | high << 32) << shift
        total = (wide >> 32 & WORD) + t.value(b) + (t.is_set(rest[-1]) if "X" in mods else 0)
    else:
        total = (t.value(a) << t.value(rest[0]) & WORD) + t.value(b)
    if carry:
        t.set_predicate(carry, total >> 32)
    t.put(target, total)


def compare(t, mods, operands, is_float=False):
    how = next(COMPARES[m[:2]] for m in mods if m[:2] in COMPARES)
    if is_float:
        result = how(*t.floats(*operands[2:4]))
    else:
        x, y = (t.value(o) if "U32" in mods else signed(t.value(o)) for o in operands[2:4])
        result = t.is_set(operands[5]) if "EX" in mods and x == y else how(x, y)
    combine = next(COMBINES[m] for m in mods if m in COMBINES)
    t.set_predicate(operands[0], combine(result, t.is_set(operands[4])))
    t.set_predicate(operands[1], combine(not result, t.is_set(operands[4])))


def logic(t, mods, operands):
    flag, (target, a, b, c, table, *_) = (operands[0], operands[1:]) if is_predicate(operands[0]) else (None, operands)
    x, y, z, result = t.value(a), t.value(b), t.value(c), 0
    for i in range(8):
        if t.value(table) >> i & 1:
            result |= (x if i & 4 else ~x) & (y if i & 2 else ~y) & (z if i & 1 else ~z)
    if flag:
        t.set_predicate(flag, result & WORD)
    t.put(target, result)


def logic_of_predicates(t, mods, operands):
    at = sum(t.is_set(p) << 2 - i for i, p in enumerate(operands[2:5]))
    for target, table in zip(operands[:2], operands[5:7]):
        t.set_predicate(target, t.value(table) >> at & 1)


def shift(t, mods, operands):
    target, low, by, high = operands
    pair, n = t.value(low) | t.value(high) << 32, t.value(by)
    if "L" in mods:
        t.put(target, pair << n >> 32 if "HI" in mods else t.value(low) << n)
    else:
        t.put(target, (signed(pair, 64) if "S32" in mods or "S64" in mods else pair) >> n >> (32 if "HI" in mods else 0))


def permute(t, mods, operands):
    target, a, selector, b = operands
    given = (t.value(a) | t.value(b) << 32).to_bytes(8, "little")
    picked = [t.value(selector) >> 4 * i & 15 for i in range(4)]
    t.put(target, int.from_bytes(bytes((255 if given[p & 7] & 128 else 0) if p & 8 else given[p & 7] for p in picked), "little"))


def constant(t, mods, operands):
    at = t.address(operands[1][operands[1].rindex("[") + 1:-1])
    for i in range(4 if "128" in mods else 2 if "64" in mods else 1):
        t.put(after(operands[0], i), t.bank.get(at + 4 * i & ~3, 0) >> (at & 3) * 8 & (0xFF if "U8" in mods else 0xFFFF if "U16" in mods else WORD))


def load(t, mods, operands, is_shared=False):
    target, place = [o for o in operands if not is_predicate(o)][:2]
    at = t.address(place) if is_shared else None
    for i in range(4 if "128" in mods else 2 if "64" in mods else 1):
        if target != "RZ":
            t.put(after(target, i), t.memory.get((at or 0) + 4 * i, ONES) if is_shared else ONES & (0xFFFF if "U16" in mods else WORD))


def store_shared(t, mods, operands):
    for i in range(4 if "128" in mods else 2 if "64" in mods else 1):
        t.memory[t.address(operands[0]) + 4 * i] = 0 if operands[1] == "RZ" else t.registers[after(operands[1], i)]


def minimum(t, mods, operands, is_float=False):
    x, y = t.floats(*operands[1:3]) if is_float else [t.value(o) if "U32" in mods else signed(t.value(o)) for o in operands[1:3]]
    least = min(x, y) if t.is_set(operands[3]) else max(x, y)
    t.put(operands[0], bits_of(least) if is_float else least)


def root(t, mods, operands):
    x, = t.floats(operands[1])
    t.put_float(operands[0], {"RCP": lambda: 1 / x if x else math.inf, "RSQ": lambda: 1 / math.sqrt(x) if x > 0 else math.inf,
                              "SQRT": lambda: math.sqrt(x)}[mods[0]]())


def to_float(t, mods, operands):
    t.put_float(operands[0], float(t.value(operands[1]) if "U32" in mods else signed(t.value(operands[1]))))


def from_half(t, mods, operands):
    if "-RZ" in operands[1]:  # a constant that is packed
        t.put(operands[0], struct.unpack("<I", struct.pack("<ee", float(operands[4]), float(operands[3])))[0])
    else:
        t.put(operands[0], ONES)


def select(t, mods, operands):
    t.put(operands[0], t.value(operands[1] if t.is_set(operands[3]) else operands[2], operands[1].startswith("|")))


def shuffle(t, mods, operands):
    if is_predicate(operands[0]):
        t.set_predicate(operands[0], True)
        operands = operands[1:]
    t.put(operands[0], t.value(operands[1]))


def vote(t, mods, operands):
    if is_predicate(operands[0]):
        t.set_predicate(operands[0], t.is_set(operands[-1]))
    else:
        t.put(operands[0], WORD if t.is_set(operands[-1]) else 0)


def predicates_to_register(t, mods, operands):
    mask = t.value(operands[3])
    t.put(operands[0], t.value(operands[2]) & ~mask | sum(t.predicates["P%d" % i] << i for i in range(7)) & mask)


def register_to_predicates(t, mods, operands):
    for i in range(7):
        if t.value(operands[2]) >> i & 1:
            t.set_predicate("P%d" % i, t.value(operands[1]) >> i & 1)


KNOWN = {
    "P2R": predicates_to_register, "R2P": register_to_predicates,
    "IADD3": add3, "IMAD": multiply, "LEA": shifted_add, "ISETP": compare, "LOP3": logic, "PLOP3": logic_of_predicates, "SHF": shift, "PRMT": permute,
    "LDC": constant, "LDG": load, "LD": load, "LDS": lambda t, m, o: load(t, m, o, True), "STS": store_shared, "SHFL": shuffle, "MUFU": root,
    "FSETP": lambda t, m, o: compare(t, m, o, True), "IMNMX": minimum, "VIMNMX": minimum, "FMNMX": lambda t, m, o: minimum(t, m, o, True),
    "VIADD": lambda t, m, o: t.put(o[0], t.value(o[1]) + t.value(o[2])), "MOV": lambda t, m, o: t.put(o[0], t.value(o[1])), "SEL": select, "FSEL": select,
    "S2R": lambda t, m, o: t.put(o[0], t.special.get(o[1], 0)), "S2UR": lambda t, m, o: t.put(o[0], t.special.get(o[1], 0)),
    "R2UR": lambda t, m, o: t.put(o[-2], t.value(o[-1])), "CS2R": lambda t, m, o: t.put(o[0], 0) if "32" in m else t.put_wide(o[0], 0),
    "FADD": lambda t, m, o: t.put_float(o[0], sum(t.floats(*o[1:3]))), "FMUL": lambda t, m, o: t.put_float(o[0], math.prod(t.floats(*o[1:3]))),
    "FFMA": lambda t, m, o: t.put_float(o[0], math.prod(t.floats(*o[1:3])) + t.floats(o[3])[0]), "I2F": to_float, "I2FP": to_float,
    "F2I": lambda t, m, o: t.put(o[0], max(0, int(t.floats(o[1])[0]))), "FCHK": lambda t, m, o: t.set_predicate(o[0], False), "HFMA2": from_half,
    "F2F": lambda t, m, o: t.put(o[0], t.value(o[1], True) >> (16 if "BF16" in m else 0)),
    "F2FP": lambda t, m, o: t.put(o[0], t.value(o[1], True) & 0xFFFF0000 | t.value(o[2], True) >> 16),
    "FLO": lambda t, m, o: t.put(o[0], (t.value(o[1]).bit_length() - 1) ^ (31 if "SH" in m else 0)), "VOTE": vote, "VOTEU": vote, "MATCH": lambda t, m, o: t.put(o[-2], WORD),
}
NOTHING = set("""NOP BSSY BSYNC WARPSYNC BAR MEMBAR ERRBAR CGAERRBAR CCTL UCGABAR_ARV UCGABAR_WAIT DEPBAR LDGDEPBAR YIELD ENDCOLLECTIVE BREAK SYNCS FENCE
    BMOV STG ST STL RED STAS LDGSTS""".split())


# ---- what is counted -------------------------------------------------------------------------------------------------------------

def bytes_of(c):
    return 16 if "128" in c.mods else 8 if "64" in c.mods else 2 if "U16" in c.mods else 4


def in_flight(log):
    """Bytes that a thread has asked for when it first waits for a load; of copies to shared memory, what is on its way whenever it has waited."""
    loads, groups, on_the_way = collections.Counter(), [0], 0
    for c, does in log:
        if c.name in ("LDG", "LD") and does and c.sets < 6 and not on_the_way:
            loads[c.sets] += bytes_of(c)
        elif any(c.waits >> b & 1 for b in loads):
            on_the_way, loads = on_the_way or sum(loads.values()), {}
        if c.name == "LDGSTS" and does:
            groups[-1] += bytes_of(c)
        elif c.name == "LDGDEPBAR":
            groups.append(0)
        elif c.name == "DEPBAR" and len(groups) > 1:
            return sum(groups[-1 - int(c.operands[-1], 16):-1])
    return on_the_way


def follow(code, name, values, threads, blocks):
    return Thread(code, constants(name, values, threads, blocks)).run().log


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    path, function, name, threads, blocks, *values = sys.argv[1:]
    with open(path) as f:
        code = code_of(texts_of(f.read())[function])
    log = follow(code, name, {v.split("=")[0]: int(v.split("=")[1], 0) for v in values}, int(threads), int(blocks))
    print("%s: %d instructions, %d predicated off; %d bytes in flight; %d cycles of issue" % (
        function, len(log), sum(not does for _, does in log), in_flight(log), sum(c.stall for c, _ in log)))
    for name, n in collections.Counter(c.name for c, _ in log).most_common(20):
        print("    %-10s%7d" % (name, n))


if __name__ == "__main__":
    main()
