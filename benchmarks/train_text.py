"""Train the model of `gossamer.stages.process.main`, and say how well it does on pages that it was not trained on.

    python benchmarks/train_text.py WCXB/dev src/gossamer/stages/process/main.json.gz

`WCXB` is a checkout of github.com/Murrough-Foley/web-content-extraction-benchmark. Needs 4 GB, ten minutes and
`pip install catboost rapidfuzz scikit-learn scipy`. Hosts are divided into five folds; the scores printed are of pages
whose hosts were in none of the folds that their model was trained on. The model written is trained on all.
"""

from __future__ import annotations

import gzip
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from urllib.parse import urlsplit

import msgspec
import numpy as np
from bench_text import Marked, marked_pages, scored, words_of
from catboost import CatBoost, Pool
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression, SGDClassifier

from gossamer.stages.process.hidden import without_hidden
from gossamer.stages.process.main import Learned, Trees, choose_blocks
from gossamer.stages.process.outline import Outline, outline_of
from gossamer.stages.process.signals import TYPES, Weights, names_of, page_names, signals
from gossamer.stages.process.signals import words_of as first_words

FOLDS = 5
OPEN_TAGS_MAX = 1_000
HOSTS_OF_NAME, HOSTS_OF_WORD, HOSTS_OF_TYPE = 8, 25, 12
"""Hosts on which something must occur to be weighed."""
TREES, DEPTH = 300, 6
PRODUCT_WEIGHT = 1.5
"""How much more blocks of products count: they are 8 % of the pages, and judged worst."""
GRAM = 5
CUT_CHARACTERS = 36_000
"""Marked texts of about 50,000 characters in the page's markup are cut off."""

Floats = NDArray[np.float64]


class Prepared:
    """A page with what training wants of it."""

    def __init__(self, page: Marked, outline: Outline) -> None:
        self.kind, self.url, self.outline = page.kind, page.url, outline
        self.host = urlsplit(page.url).hostname or page.name
        self.wanted = words_of(page.text)
        self.found = [words_of(block.text) for block in outline.blocks]
        self.labels = labels(self.found, self.wanted)
        size = max(len(self.wanted), 30)
        counts = PRODUCT_WEIGHT if page.kind == "product" else 1.0
        self.weights = [counts * min(15.0, min(block.words / size, 1) * 100 + 0.02) for block in outline.blocks]
        if len(page.text) > CUT_CHARACTERS:
            # The marked text may end before the content does: what comes after says nothing.
            end = max(
                (at for at, label in enumerate(self.labels) if label > 0.9 and len(self.found[at]) > 4), default=0
            )
            self.weights[end + 1 :] = [1e-6] * (len(self.weights) - end - 1)
        names = [names_of(*tag) for tag in outline.names]
        paths: list[list[str]] = []
        for kind, parent in zip(outline.kinds, outline.parents, strict=True):
            paths.append((paths[parent] if paths else []) + names[kind])
        self.names = [paths[block.node] for block in outline.blocks]
        self.words = [first_words(block.text) for block in outline.blocks]
        self.page_names = {name for path in self.names for name in path}.union(page_names(outline, page.url))


def labels(found: Sequence[Sequence[str]], wanted: Sequence[str]) -> list[float]:
    """Return what share of each block is main content: by the longest common sequence of words, or by five in a row."""
    words = [word for block in found for word in block]
    owners = [at for at, block in enumerate(found) for _ in block]
    shared = [0] * len(found)
    for part in LCSseq.opcodes(words, wanted) if words and wanted else ():
        if part.tag == "equal":
            for at in owners[part.src_start : part.src_end]:
                shared[at] += 1
    grams = {tuple(wanted[at : at + GRAM]) for at in range(len(wanted) - GRAM + 1)}
    out = []
    for block, count in zip(found, shared, strict=True):
        label = count / len(block) if block else 0.0
        if len(block) >= 8 and label < 0.8:
            runs = [tuple(block[at : at + GRAM]) in grams for at in range(len(block) - GRAM + 1)]
            label = max(label, mean(runs))
        out.append(label)
    return out


class Corpus:
    """All pages, their blocks one after another."""

    def __init__(self, folder: Path) -> None:
        self.pages = []
        for page in marked_pages(folder):
            outline = outline_of(without_hidden(page.html)[0].decode("utf-8", "replace"), OPEN_TAGS_MAX)
            if outline is not None and outline.blocks:
                self.pages.append(Prepared(page, outline))
        hosts = sorted({page.host for page in self.pages})
        fold_of = dict(zip(hosts, np.random.RandomState(0).randint(0, FOLDS, len(hosts)), strict=True))
        self.page_folds = np.array([fold_of[page.host] for page in self.pages])
        self.folds = np.repeat(self.page_folds, [len(page.labels) for page in self.pages])
        self.labels = np.concatenate([page.labels for page in self.pages])
        self.weights = np.concatenate([page.weights for page in self.pages])
        self.names, self.name_rows = self._rows(lambda page: page.names, HOSTS_OF_NAME, 2)
        self.words, self.word_rows = self._rows(lambda page: page.words, HOSTS_OF_WORD, 1)
        self.types, self.type_rows = self._rows(lambda page: [page.page_names], HOSTS_OF_TYPE, 1)

    def _rows(
        self, held: Callable[[Prepared], Sequence[Iterable[str]]], hosts_min: int, count_max: int
    ) -> tuple[list[str], csr_matrix]:
        """Return what occurs on enough hosts, and for each unit of each page how often each of these does."""
        hosts: dict[str, set[str]] = defaultdict(set)
        for page in self.pages:
            for unit in held(page):
                for name in unit:
                    hosts[name].add(page.host)
        names = sorted(name for name, where in hosts.items() if len(where) >= hosts_min)
        place = {name: at for at, name in enumerate(names)}
        cells: list[tuple[int, int, int]] = []
        row = 0
        for page in self.pages:
            for unit in held(page):
                cells += [(row, place[n], min(c, count_max)) for n, c in Counter(unit).items() if n in place]
                row += 1
        rows, columns, values = np.array(cells, dtype=np.int64).T
        return names, csr_matrix((values.astype(np.float32), (rows, columns)), shape=(row, len(names)))

    def learned(self, without: int | None) -> tuple[dict[str, float], dict[str, float], dict[str, list[float]]]:
        """Return the weights of names, words and types, learned from the pages of all folds but one."""
        blocks, pages = self.folds != without, self.page_folds != without
        names = self._linear(self.name_rows, self.names, blocks, 2e-5)
        words = self._linear(self.word_rows, self.words, blocks, 1e-5)
        kinds = np.array([page.kind for page in self.pages])
        types = LogisticRegression(C=0.03, max_iter=300).fit(self.type_rows[pages], kinds[pages])
        assert tuple(types.classes_) == TYPES
        rows = {name: [round(float(one), 3) for one in types.coef_[:, at]] for at, name in enumerate(self.types)}
        return names, words, {name: row for name, row in rows.items() if max(map(abs, row)) > 0.03}

    def _linear(self, rows: csr_matrix, names: list[str], of: NDArray[np.bool_], alpha: float) -> dict[str, float]:
        model = SGDClassifier("log_loss", alpha=alpha, max_iter=8, tol=None, random_state=0, average=True)
        weights = self.weights[of]
        model.fit(rows[of], self.labels[of] > 0.5, sample_weight=weights / weights.mean())
        return {n: round(float(c), 3) for n, c in zip(names, model.coef_[0], strict=True) if abs(c) > 0.03}

    def signals(self) -> NDArray[np.float32]:
        """Return the signals of all blocks, each with weights that were learned without the page's fold."""
        weights = [Weights(*self.learned(fold)) for fold in range(FOLDS)]
        rows = [
            signals(page.outline, weights[fold], page.url)
            for page, fold in zip(self.pages, self.page_folds, strict=True)
        ]
        return np.concatenate(rows)


def trained(rows: NDArray[np.float32], corpus: Corpus, of: NDArray[np.bool_]) -> CatBoost:
    model = CatBoost(
        {
            "loss_function": "CrossEntropy", "iterations": TREES, "depth": DEPTH, "learning_rate": 0.1,
            "l2_leaf_reg": 5, "random_seed": 0, "verbose": 0, "thread_count": 1, "border_count": 64, "rsm": 0.3,
            "allow_writing_files": False,
        }
    )  # fmt: skip
    model.fit(Pool(rows[of], corpus.labels[of], weight=corpus.weights[of]))
    return model


def trees(model: CatBoost, scratch: Path) -> Trees:
    """Return what CatBoost learned, as `Forest` takes it."""
    model.save_model(str(scratch), format="json")
    saved = msgspec.json.decode(scratch.read_bytes())
    scratch.unlink()
    whole = saved["oblivious_trees"]
    assert all(len(tree["splits"]) == DEPTH for tree in whole)
    scale, bias = saved["scale_and_bias"]
    return Trees(
        features=[[tree["splits"][level]["float_feature_index"] for tree in whole] for level in range(DEPTH)],
        borders=[[round(tree["splits"][level]["border"], 6) for tree in whole] for level in range(DEPTH)],
        leaves=[[round(scale * leaf * 1_000) for leaf in tree["leaf_values"]] for tree in whole],
        bias=float(bias[0]),
    )


def report(corpus: Corpus, likely: Floats) -> None:
    scores: dict[str, list[tuple[float, float]]] = defaultdict(list)
    at = 0
    for page in corpus.pages:
        size = len(page.labels)
        words = np.array([block.words for block in page.outline.blocks], dtype=np.float32)
        keep = choose_blocks(likely[at : at + size].astype(np.float32), words)
        found = Counter(word for block, keeps in zip(page.found, keep, strict=True) if keeps for word in block)
        scores[page.kind].append(scored(found, Counter(page.wanted)))
        at += size
    scores["all"] = [one for kind in list(scores.values()) for one in kind]
    for kind, found in sorted(scores.items()):
        f1, precision = np.mean(found, axis=0)
        print(f"| {kind} | {len(found)} | {f1:.3f} | {precision:.3f} |", flush=True)


def main() -> None:
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    started = time.monotonic()
    corpus = Corpus(folder)
    print(f"{len(corpus.pages)} pages, {len(corpus.labels)} blocks, {time.monotonic() - started:.0f} s", flush=True)
    rows = corpus.signals()
    print(f"{rows.shape[1]} signals, {time.monotonic() - started:.0f} s", flush=True)
    likely = np.zeros(len(rows))
    for fold in range(FOLDS):
        of = corpus.folds == fold
        likely[of] = 1 / (1 + np.exp(-trained(rows, corpus, ~of).predict(rows[of])))
        print(f"fold {fold}, {time.monotonic() - started:.0f} s", flush=True)
    report(corpus, likely)
    whole = trained(rows, corpus, np.ones(len(rows), dtype=np.bool_))
    learned = Learned(*corpus.learned(None), trees(whole, target.with_suffix(".tmp")))
    target.write_bytes(gzip.compress(msgspec.json.encode(learned), mtime=0))
    print(f"{target}: {target.stat().st_size} bytes, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
