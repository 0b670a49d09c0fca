# SPDX-License-Identifier: Apache-2.0
"""The recurrent experiments of Zhang & Sennrich 2019: RNNSearch, the order embedding, the attentive reader. Loops over the words are
Python's, as they were Theano's; norms stand behind the products, where the paper's code has them. Tensors are (steps, batch, width)."""

import torch
import torch.nn.functional as F
from torch import nn

from . import data, draws

EMBEDDING_DEVIATION = 0.1
TOPICS, TOPIC_STREAM, MARGIN = 256, 0x1A6E, 0.05


class Projection(nn.Module):
    """norm(x w^T + b). Weights of variance 1 / in: a sum over inputs of variance 1 has variance 1."""

    def __init__(self, make, name, size, out, biased=True, normed=True):
        super().__init__()
        self.weight = make.matrix(f"{name}.weight", out, size, size**-0.5)
        self.bias = make.vector(out) if biased else None
        self.norm = make.norm(out) if normed else nn.Identity()

    def product(self, x):
        return F.linear(x, self.weight, self.bias)

    def forward(self, x):
        return self.norm(self.product(x))


class GRU(nn.Module):
    """As in Nematus, and in the order embedding's code: r, u = sigmoid(norm(x Wg + b) + norm(h Ug)), c = tanh(norm(x Wc + b) + r *
    norm(h Uc)), h' = u h + (1 - u) c. by_step: the input's products and norms once a step, as inside theano.scan, else for all at once."""

    def __init__(self, make, name, size, hidden, by_step=False):
        super().__init__()
        self.hidden, self.by_step = hidden, by_step
        self.x_gates = Projection(make, f"{name}.x_gates", size, 2 * hidden)
        self.x_candidate = Projection(make, f"{name}.x_candidate", size, hidden)
        self.h_gates = Projection(make, f"{name}.h_gates", hidden, 2 * hidden, biased=False)
        self.h_candidate = Projection(make, f"{name}.h_candidate", hidden, hidden, biased=False)

    def input(self, x):
        return self.x_gates(x), self.x_candidate(x)

    def step(self, of_gates, of_candidate, state):
        r, u = torch.sigmoid(of_gates + self.h_gates(state)).chunk(2, -1)
        candidate = torch.tanh(of_candidate + r * self.h_candidate(state))
        return u * state + (1 - u) * candidate

    def forward(self, x, backwards=False):
        """The states after each step."""
        state = x.new_zeros(x.shape[1], self.hidden)
        inputs = map(self.input, x) if self.by_step else zip(*self.input(x))
        states = []
        for of_gates, of_candidate in reversed(list(inputs)) if backwards else inputs:
            state = self.step(of_gates, of_candidate, state)
            states.append(state)
        return torch.stack(states[::-1] if backwards else states)


class LSTM(nn.Module):
    """After Cooijmans et al. 2017: i, f, o, g of norm(x W) + norm(h U) + b; c' = f c + i g; h' = o tanh(norm(c')). Each norm once a
    step."""

    def __init__(self, make, name, hidden):
        super().__init__()
        self.hidden = hidden
        self.x = Projection(make, f"{name}.x", hidden, 4 * hidden, biased=False)
        self.h = Projection(make, f"{name}.h", hidden, 4 * hidden, biased=False)
        self.bias, self.cell = make.vector(4 * hidden), make.norm(hidden)

    def step(self, product, state, cell):
        gates = self.x.norm(product) + self.h(state) + self.bias
        i, f, o = torch.sigmoid(gates[:, : 3 * self.hidden]).chunk(3, -1)
        cell = f * cell + i * torch.tanh(gates[:, 3 * self.hidden :])
        return o * torch.tanh(self.cell(cell)), cell

    def forward(self, x, backwards=False):
        """The states after each step."""
        state = cell = x.new_zeros(x.shape[1], self.hidden)
        products, states = self.x.product(x), []
        for product in products.flip(0) if backwards else products:
            state, cell = self.step(product, state, cell)
            states.append(state)
        return torch.stack(states[::-1] if backwards else states)


class Additive(nn.Module):
    """Bahdanau et al. 2015: score_j = v . tanh(norm(query Wq) + norm(memory_j Wm + b)); context = sum of softmax(score)_j memory_j."""

    def __init__(self, make, name, query, memory, width, normed):
        super().__init__()
        self.query = Projection(make, f"{name}.query", query, width, biased=False, normed=normed)
        self.memory = Projection(make, f"{name}.memory", memory, width, normed=normed)
        self.score = make.matrix(f"{name}.score", 1, width, width**-0.5)

    def forward(self, query, keys, memory):
        """keys: self.memory(memory), made once; memory: (sources, batch, width)."""
        scores = F.linear(torch.tanh(self.query(query) + keys), self.score).squeeze(-1)
        return (scores.softmax(0).t().unsqueeze(1) @ memory.transpose(0, 1)).squeeze(1)


# ---- RNNSearch ----


class Decoder(nn.Module):
    """Nematus': two units a step with the attention between them, then a readout of state, word and context."""

    def __init__(self, make, name, embedding, hidden, memory, vocabulary):
        super().__init__()
        self.first = GRU(make, f"{name}.first", embedding, hidden)
        self.second = GRU(make, f"{name}.second", memory, hidden)
        self.attention = Additive(make, f"{name}.attention", hidden, memory, memory, normed=True)
        self.start = Projection(make, f"{name}.start", memory, hidden)
        self.of_state = Projection(make, f"{name}.of_state", hidden, embedding)
        self.of_word = Projection(make, f"{name}.of_word", embedding, embedding)
        self.of_context = Projection(make, f"{name}.of_context", memory, embedding)
        self.output = Projection(make, f"{name}.output", embedding, vocabulary, normed=False)

    def forward(self, words, memory):
        """Logits of each step."""
        state, keys = torch.tanh(self.start(memory.mean(0))), self.attention.memory(memory)
        states, contexts = [], []
        for of_gates, of_candidate in zip(*self.first.input(words)):
            middle = self.first.step(of_gates, of_candidate, state)
            context = self.attention(middle, keys, memory)
            state = self.second.step(*self.second.input(context), middle)
            states.append(state)
            contexts.append(context)
        said = self.of_state(torch.stack(states)) + self.of_word(words) + self.of_context(torch.stack(contexts))
        return self.output(torch.tanh(said))


class RNNSearch(nn.Module):
    """A bidirectional GRU reads a piece of text, the decoder predicts the piece that follows, byte by byte; bytes are the first 256 of the
    vocabulary. All pieces are equally long. At 1024 an embedding has 512 numbers and there are 32,000 words."""

    def __init__(self, make):
        super().__init__()
        self.arm, hidden = make.arm, make.arm.hidden
        embedding, vocabulary = hidden // 2, max(256, hidden * 125 // 4)
        self.source = make.matrix("source", vocabulary, embedding, EMBEDDING_DEVIATION)
        self.target = make.matrix("target", vocabulary, embedding, EMBEDDING_DEVIATION)
        self.forwards = GRU(make, "encoder.forwards", embedding, hidden)
        self.backwards = GRU(make, "encoder.backwards", embedding, hidden)
        self.decoder = Decoder(make, "decoder", embedding, hidden, 2 * hidden, vocabulary)

    def batch(self, text, number):
        """Sources, words, targets; the first word is the last byte of the source."""
        n, numbers = self.arm.sequence, torch.arange(number * self.arm.batch, (number + 1) * self.arm.batch)
        tokens, targets = text.sequences(numbers, 2 * n - 1)
        return tokens[:, :n].t(), tokens[:, n - 1 :].t(), targets[:, n - 1 :].t()

    def loss(self, batch):
        sources, words, targets = batch
        source = F.embedding(sources, self.source)
        memory = torch.cat((self.forwards(source), self.backwards(source, backwards=True)), -1)
        logits = self.decoder(F.embedding(words, self.target), memory)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


# ---- order embedding ----


def order_loss(captions, images):
    """Vendrov et al. 2016, equations 2 and 4, divided by the pairs of the batch. Vectors are made non-negative and of length 1; a
    caption lies above its image by a margin more than above other images, and than other captions above its image:
    E(s, m) = |max(0, s - m)|^2."""
    captions, images = (x.abs() / (x.norm(dim=-1, keepdim=True) + 1e-8) for x in (captions.float(), images.float()))
    violations = (captions[:, None] - images).clamp_min(0).pow(2).sum(-1)
    own = violations.diagonal()
    hinges = (MARGIN - violations + own[:, None]).clamp_min(0) + (MARGIN - violations + own).clamp_min(0)
    return (hinges.sum() - hinges.diagonal().sum()) / len(captions)


class OrderEmbedding(nn.Module):
    """A GRU reads a caption, a matrix takes the image's features. Captions are words of the text; features are made of their words (a
    fixed random vector for each, summed, without what is negative), so that there is something to learn. At 1024 a word has 300 numbers,
    an image 4096, and there are 8192 words."""

    def __init__(self, make):
        super().__init__()
        self.arm, hidden = make.arm, make.arm.hidden
        self.n_words, width, image = 8 * hidden, hidden * 75 // 256, 4 * hidden
        self.table = make.matrix("words", self.n_words, width, EMBEDDING_DEVIATION)
        self.caption = GRU(make, "caption", width, hidden, by_step=True)
        self.image = Projection(make, "image", image, hidden, normed=False)
        self.topics = draws.normal(draws.stream(0, TOPIC_STREAM), torch.arange(TOPICS * image)).float().view(TOPICS, image)

    def batch(self, text, number):
        """Tokens (steps, batch) and features (batch, image)."""
        numbers = torch.arange(number * self.arm.batch, (number + 1) * self.arm.batch)
        hashes = text.words()[1][text.word_runs(numbers, self.arm.sequence)]
        features = self.topics[draws.below(hashes, TOPICS)].sum(1).clamp_min(0) * self.arm.sequence**-0.5
        return draws.below(hashes, self.n_words).t(), features

    def loss(self, batch):
        tokens, features = batch
        captions = self.caption(F.embedding(tokens, self.table))[-1]
        return order_loss(captions, self.image(features))


# ---- attentive reader ----


class Reader(nn.Module):
    """Two LSTMs, one in each direction, over embedded tokens."""

    def __init__(self, make, name, hidden):
        super().__init__()
        self.forwards, self.backwards = LSTM(make, f"{name}.forwards", hidden), LSTM(make, f"{name}.backwards", hidden)

    def forward(self, words):
        """The states side by side, and what each direction said last."""
        forwards, backwards = self.forwards(words), self.backwards(words, backwards=True)
        return torch.cat((forwards, backwards), -1), torch.cat((forwards[-1], backwards[0]), -1)


class AttentiveReader(nn.Module):
    """Hermann et al. 2015: one reader takes a document, another a question with a word left out; attention by the question over the
    document says which entity it is. Norms stand inside the LSTMs alone. At 240 there are 49,145 words and 409 answers; a question has a
    word for 60 of the document."""

    def __init__(self, make):
        super().__init__()
        self.arm, hidden = make.arm, make.arm.hidden
        self.answers, self.n_words = hidden * 409 // 240, hidden * 49145 // 240
        self.table = make.matrix("words", self.n_words, hidden, EMBEDDING_DEVIATION)
        self.document, self.question = Reader(make, "document", hidden), Reader(make, "query", hidden)
        self.attention = Additive(make, "attention", 2 * hidden, 2 * hidden, hidden, normed=False)
        self.of_document = Projection(make, "joint.document", 2 * hidden, hidden, normed=False)
        self.of_question = Projection(make, "joint.query", 2 * hidden, hidden, biased=False, normed=False)
        self.answer = Projection(make, "answer", hidden, self.answers, normed=False)

    def batch(self, text, number):
        """Documents and questions (steps, batch), entities."""
        numbers = torch.arange(number * self.arm.batch, (number + 1) * self.arm.batch)
        words = self.arm.sequence
        document, question, asked = data.clozes(text, numbers, words, max(4, words // 60), self.answers, self.n_words)
        return document.t(), question.t(), asked

    def loss(self, batch):
        document, question, asked = batch
        memory, _ = self.document(F.embedding(document, self.table))
        _, u = self.question(F.embedding(question, self.table))
        found = self.attention(u, self.attention.memory(memory), memory)
        logits = self.answer(torch.tanh(self.of_document(found) + self.of_question(u)))
        return F.cross_entropy(logits.float(), asked, ignore_index=-1, reduction="sum") / (asked >= 0).sum().clamp_min(1)
