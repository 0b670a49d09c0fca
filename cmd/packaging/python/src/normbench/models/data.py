# SPDX-License-Identifier: Apache-2.0
"""What models are trained on. A batch depends on its number alone, so that arms of any process see the same.

Images are drawn, since CIFAR-10 would have to be downloaded: gratings of ten classes (five directions, two wavelengths) in a colour, a
phase, a contrast and a brightness of their own, under noise. They are easier than photographs."""

import math
import os
import re

import torch

from . import draws

USUAL = (  # English prose that every Debian has, longest first
    "/usr/share/common-licenses/GPL-3",
    "/usr/share/common-licenses/GFDL-1.3",
    "/usr/share/common-licenses/GPL-2",
    "/usr/share/common-licenses/Apache-2.0",
    "/etc/services",
)
LEAST_BYTES = 1024
TEXT, WORDS, LENGTHS, TEXTURE = 0x7E97, 0x3047D5, 0x4C454E, 0x7E87
WORD = re.compile(rb"[0-9A-Za-z\x80-\xff]+")
ENTITY_BYTES = 5
CLASSES, COLOURS = 10, 3


def _readable(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


class Text:
    """The bytes of a file; None: the first of the usual ones."""

    def __init__(self, path=None):
        path = path or os.environ.get("NORMBENCH_TEXT")
        found = [(each, _readable(each)) for each in ([path] if path else USUAL)]
        found = [(each, read) for each, read in found if len(read) >= LEAST_BYTES]
        if not found:
            raise OSError(f"no text to train on: {path or USUAL[0]} cannot be read or has less than {LEAST_BYTES} bytes")
        self.path, self.raw = found[0]
        self.bytes = torch.frombuffer(bytearray(self.raw), dtype=torch.uint8).long()

    def sequences(self, numbers, length):
        """(n, length) tokens and targets: each target is the byte behind its token; past the end the text begins again."""
        starts = draws.below(draws.bits(draws.stream(0, TEXT), numbers), len(self.raw))
        at = (starts[:, None] + torch.arange(length + 1)) % len(self.raw)
        return self.bytes[at[:, :-1]], self.bytes[at[:, 1:]]

    def words(self):
        """Where each word begins, its hash (of lower-cased letters; 64 bits) and how many bytes it has."""
        if not hasattr(self, "_words"):
            found = [(each.start(), each.group()) for each in WORD.finditer(self.raw)]
            hashes = [draws.hash_of(word.lower()) for _, word in found]
            hashed = draws.mixed(torch.tensor([draws.signed(each) for each in hashes]))
            self._words = torch.tensor([at for at, _ in found]), hashed, torch.tensor([len(word) for _, word in found])
        return self._words

    def word_runs(self, numbers, length):
        """(n, length) indices of words in a row, from drawn places on."""
        places, hashes, _ = self.words()
        starts = draws.below(draws.bits(draws.stream(0, WORDS), numbers), len(self.raw))
        return (torch.searchsorted(places, starts)[:, None] + torch.arange(length)) % len(hashes)


def lengths(numbers, batch, sequence):
    """Of padded sequences: two of a batch are whole, the others a random length of a quarter or more."""
    least = max(1, sequence // 4)
    drawn = least + draws.below(draws.bits(draws.stream(0, LENGTHS), numbers), sequence - least + 1)
    drawn[:2] = sequence
    return drawn


def _cloze(hashes, sizes, document, query, entities, vocabulary):
    """One question of the words of a run: tokens of the document and the query, and the entity asked for (-1: none follows)."""
    numbered = {}
    for hashed, size in zip(hashes[:document], sizes[:document]):
        if size >= ENTITY_BYTES and hashed not in numbered and len(numbered) < entities:
            numbered[hashed] = len(numbered)
    tokens = [numbered.get(hashed, entities + 1 + hashed % (1 << 64) % (vocabulary - entities - 1)) for hashed in hashes]
    half = query // 2
    places = range(document + half, len(hashes) - query + half + 1)
    answer = next((at for at in places if tokens[at] < entities), places[0])
    asked = tokens[answer] if tokens[answer] < entities else -1
    asking = tokens[answer - half : answer - half + query]
    asking[half] = entities
    return tokens[:document], asking, asked


def clozes(text, numbers, document, query, entities, vocabulary):
    """Questions as Hermann et al. 2015 made them: (n, document) and (n, query) tokens, (n,) entities. Entities are words of five letters
    and more of the document, numbered by their first place in it."""
    _, hashes, sizes = text.words()
    runs = text.word_runs(numbers, 2 * (document + query))
    made = [_cloze(hashes[run].tolist(), sizes[run].tolist(), document, query, entities, vocabulary) for run in runs]
    return [torch.tensor(part) for part in zip(*made)]


def textures(numbers, side):
    """(n, 3, side, side) pixels and (n,) classes."""
    start = draws.stream(numbers, TEXTURE)[:, None]
    classes = draws.below(draws.bits(start, 0), CLASSES)
    direction = math.pi * (classes % 5 + 0.3 * (draws.uniform(start, 1) - 0.5)) / 5
    wave = 2 * math.pi / torch.tensor([5.0, 8.0], dtype=torch.float64)[classes // 5]
    phase, contrast = 2 * math.pi * draws.uniform(start, 2), 0.3 + draws.uniform(start, 3)
    colour = torch.arange(COLOURS)
    weight, bright = draws.normal(start, 4 + colour)[..., None], draws.normal(start, 8 + colour)[..., None]
    row, col = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    along = col.flatten() * direction.cos() + row.flatten() * direction.sin()
    grating = contrast * torch.sin(wave * along + phase)
    noise = draws.normal(start, 16 + torch.arange(COLOURS * side * side)).view(-1, COLOURS, side * side)
    pixels = bright + weight * grating[:, None] + 0.4 * noise
    return pixels.float().view(-1, COLOURS, side, side), classes[:, 0]
