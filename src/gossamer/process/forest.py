"""Forest: decision trees that ask the same at each node of a level, which numpy answers for all rows at once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from gossamer.process.signals import Rows


class Trees(msgspec.Struct, frozen=True):
    """Trees of one depth, as `benchmarks/train_text.py` writes them."""

    features: Sequence[Sequence[int]]
    """For each level, the column that each tree looks at."""
    borders: Sequence[Sequence[float]]
    """For each level, the value above which each tree goes on to the right."""
    leaves: Sequence[Sequence[int]]
    """For each tree, its leaves in thousandths; bit n of a leaf's place is the answer at level n."""
    bias: float


class Forest:
    """Estimates a probability for each row. About 0.3 ms for 300 rows and 120 trees of depth 6."""

    def __init__(self, trees: Trees) -> None:
        self._levels = [
            (np.array(features, dtype=np.intp), np.array(borders, dtype=np.float32)[:, None])
            for features, borders in zip(trees.features, trees.borders, strict=True)
        ]
        leaves = np.array(trees.leaves, dtype=np.float32) / 1_000
        self._leaves = leaves.ravel()
        self._starts = (np.arange(len(leaves), dtype=np.int32) * leaves.shape[1])[:, None]
        self._bias = trees.bias

    def likely(self, rows: Rows) -> Rows:
        """Return a probability for each row."""
        columns = np.ascontiguousarray(rows.T)
        at = np.repeat(self._starts, columns.shape[1], axis=1)
        for level, (features, borders) in enumerate(self._levels):
            at += (columns[features] > borders).astype(np.int32) << level
        scores = self._leaves[at].sum(axis=0) + self._bias
        return np.asarray(1 / (1 + np.exp(-scores)), dtype=np.float32)
