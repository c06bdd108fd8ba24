"""The labels of a learner: sorted for the user, numbered internally by order of appearance."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bkbopt.learners.core.rows import as_announced, merged_classes
from bkbopt.learners.numerics.losses import Array, Indices

__all__ = ["Classes"]


@dataclass(frozen=True)
class Classes:
    """Labels and their numbers.

    Args:
        labels: those that appeared or were announced, sorted `(K,)`.
        order: the positions in `labels` of the classes 0, 1, ... that have a number `(m,)`.
    """

    labels: npt.NDArray[Any]
    order: Indices

    @classmethod
    def none(cls) -> "Classes":
        """Before the first row."""
        return cls(np.zeros(0), np.zeros(0, dtype=np.int64))

    @property
    def sign(self) -> float:
        """The factor from raw predictions to margins of the second label, for two labels."""
        return 1.0 if not len(self.order) or self.order[0] == 0 else -1.0

    @functools.cached_property
    def _pair(self) -> tuple[object, object] | None:
        """The labels of the classes 0 and 1 if there are no others, else None."""
        if not len(self.labels) == len(self.order) == 2:
            return None
        return self.labels[self.order[0]], self.labels[self.order[1]]

    def with_labels(self, labels: npt.NDArray[Any], announced: object) -> "tuple[Classes, npt.NDArray[Any]]":
        """The classes with those of new labels `(n,)`, and these labels' numbers `(n,)`; of two: whether it is class 1.

        Two labels that are announced before the first row are numbered at once, in sorted order; so are the first two
        of a stream. Others are numbered as they appear.

        Raises:
            ArgumentError: they cannot be compared, or are too many.
        """
        is_first, known = not len(self.labels), self.labels
        if announced is not None:
            known = merged_classes(known, as_announced(announced), "classes")
        two = Classes(known, np.arange(2)) if is_first and len(known) == 2 else self
        if two._pair is not None and len(known) == 2:
            second = np.asarray(labels == two._pair[1])
            if np.logical_or(second, labels == two._pair[0]).all():
                return two, second
        if not _are_known(labels, known):
            known = merged_classes(known, labels)
        order = np.searchsorted(known, self.labels[self.order]) if len(self.order) else self.order
        if is_first and announced is not None and len(known) == 2:
            order = np.arange(2)
        place = np.searchsorted(known, labels)
        if len(order) < len(known):
            found, first = np.unique(place, return_index=True)
            new = [int(found[i]) for i in np.argsort(first) if found[i] not in order]
            if not len(order):
                new[:2] = sorted(new[:2])
            order = np.concatenate([order, np.array(new, dtype=np.int64)])
        number = np.full(len(known), -1)
        number[order] = np.arange(len(order))
        return Classes(known, order.astype(np.int64)), number[place]

    def margins(self, raw: Array) -> Array:
        """Margins `(n, K)` of the sorted labels, minus infinity for those that have not appeared."""
        if raw.ndim == 1:
            raw = np.column_stack([-raw, raw])[:, : len(self.order)]
        out = np.full((len(raw), len(self.labels)), -np.inf)
        out[:, self.order[: raw.shape[1]]] = raw
        return out

    def before_second(
        self, predicted: npt.NDArray[Any], y: npt.NDArray[Any], labels: npt.NDArray[Any]
    ) -> npt.NDArray[Any]:
        """The labels `predicted (n,)` of a stream with labels `y (n,)`, the only known one before there was a second.

        These classes, one at most, are those before the stream, `labels (K,)` those after it. Before the first row of
        all the first of these is predicted.
        """
        only, end = self._until_second(y)
        start = 1 - len(self.order)
        predicted[:start] = labels[0]
        predicted[start:end] = only
        return predicted

    def unseen_margins(self, F: Array, y: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Array:
        """The margins `F (n, K)` of such a stream, minus infinity for the first two classes until a row was learnt."""
        only, end = self._until_second(y)
        if y[end - 1] != only:
            F[:end, labels == y[end - 1]] = -np.inf
        F[: 1 - len(self.order)] = -np.inf
        return F

    def _until_second(self, y: npt.NDArray[Any]) -> tuple[object, int]:
        """The first label of all, and the number of rows of `y (n,)` up to the first of another label, included."""
        only = self.labels[self.order[0]] if len(self.order) else y[0]
        others = np.flatnonzero(y != only)
        return only, int(others[0]) + 1 if len(others) else len(y)

    def predicted(self, raw: Array) -> npt.NDArray[Any]:
        """Labels `(n,)`; a margin of zero between two labels gives the first of them."""
        if len(self.labels) <= 2 and raw.ndim == 1:
            if len(self.labels) == 1:
                return np.repeat(self.labels, len(raw))
            return self.labels[(self.sign * raw > 0.0).astype(np.intp)]
        return self.labels[self.margins(raw).argmax(1)]


def _are_known(labels: npt.NDArray[Any], known: npt.NDArray[Any]) -> bool:
    """Whether all `labels` are among `known`; labels of types that cannot be compared are not."""
    kinds = {labels.dtype.kind == "U", known.dtype.kind == "U"}
    if len(kinds) > 1 and "O" not in (labels.dtype.kind, known.dtype.kind):
        return False
    return bool(np.isin(labels, known).all())
