"""The order in which a value's dimensions are stored, so that views and permutations cost nothing until needed.

A convolution returns NHWC where torch has NCHW; splitting heads is a view and a permutation. A `Form` has the
dimensions in storage order, and the position of each of torch's dimensions among them. Views and permutations only
change the form. Pointwise operations run on the stored tensor, in any order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """One step along a dimension is `inner` elements along dimension `dim` of a stored tensor."""

    dim: int
    inner: int


@dataclass(frozen=True)
class Form:
    """`stored_shape`: sizes in storage order. `axes`: for each of torch's dimensions, its place in `stored_shape`."""

    stored_shape: Shape
    axes: Shape

    @classmethod
    def plain(cls, shape: Sequence[int]) -> Form:
        shape = tuple(shape)
        return cls(shape, tuple(range(len(shape))))

    @property
    def shape(self) -> Shape:
        """torch's sizes."""
        return tuple([self.stored_shape[axis] for axis in self.axes])

    @property
    def is_plain(self) -> bool:
        """Whether torch's order is the storage order (dimensions of size 1 may be anywhere)."""
        return _ascending([axis for axis in self.axes if self.stored_shape[axis] != 1])

    @property
    def order(self) -> Shape:
        """For each stored dimension, the index of torch's dimension."""
        places = [0] * len(self.axes)
        for dim, axis in enumerate(self.axes):
            places[axis] = dim
        return tuple(places)

    def permuted(self, dims: Sequence[int]) -> Form:
        return Form(self.stored_shape, tuple([self.axes[dim] for dim in dims]))

    def resized(self, dim: int, size: int) -> Form:
        """The form with another size of one of torch's dimensions."""
        axis = self.axes[dim]
        return Form((*self.stored_shape[:axis], size, *self.stored_shape[axis + 1 :]), self.axes)

    def place(self, dim: int, stored: Sequence[int]) -> Place | None:
        """The position of torch's dimension in a stored tensor, which may merge or split dimensions of `stored_shape`.

        None if it is an inner part of a stored dimension, or spans several of them.

        >>> Form((2, 50, 3, 12, 64), (2, 0, 3, 1, 4)).place(0, (2, 50, 2304))
        Place(dim=2, inner=768)
        """
        axis = self.axes[dim]
        for left, right in matched_groups(self.stored_shape, tuple(stored)) or ():
            if axis not in left:
                continue
            wide = [each for each in right if stored[each] != 1] or right[-1:]
            position = left.index(axis)
            if len(wide) != 1 or math.prod([self.stored_shape[each] for each in left[:position]]) != 1:
                return None
            return Place(wide[0], math.prod([self.stored_shape[each] for each in left[position + 1 :]]))
        return None

    def gathered(self, shape: Sequence[int]) -> tuple[Shape, Form] | None:
        """For a view that has to move data: the permutation of `stored_shape`, and the form after it.

        Images stay channels-last. Everything else is stored in torch's order, for which this returns None.

        >>> shuffled = Form((1, 7, 7, 2, 29), (0, 4, 3, 1, 2))  # torch has [1, 29, 2, 7, 7]
        >>> shuffled.gathered((1, 58, 7, 7))
        ((0, 1, 2, 4, 3), Form(stored_shape=(1, 7, 7, 58), axes=(0, 3, 1, 2)))
        """
        shape = tuple(shape)
        groups = matched_groups(self.shape, shape)
        if groups is None or len(shape) != 4 or self.is_plain:
            return None
        firsts = {}
        for old, new in groups:
            places = [self.axes[dim] for dim in old if self.shape[dim] != 1]
            for dim in new:
                if shape[dim] != 1:
                    firsts[dim] = min(places), dim
        order = [dim for dim in (0, 2, 3, 1) if dim in firsts]
        if order == sorted(order) or sorted(firsts, key=firsts.__getitem__) != order:
            return None
        taken = [self.axes[dim] for old, _ in sorted(groups, key=_channels_last) for dim in old]
        return tuple(taken), Form(tuple([shape[dim] for dim in (0, 2, 3, 1)]), (0, 3, 1, 2))

    def viewed(self, shape: Sequence[int]) -> Form | None:
        """The form of torch's `view(shape)`, or None if data would have to move.

        >>> nhwc = Form((1, 7, 7, 64), (0, 3, 1, 2))
        >>> nhwc.viewed((1, 64, 49))
        Form(stored_shape=(1, 49, 64), axes=(0, 2, 1))
        >>> nhwc.viewed((64 * 49,)) is None
        True
        """
        shape = tuple(shape)
        if self.is_plain:
            return Form.plain(shape)
        groups = matched_groups(self.shape, shape)
        if groups is None:
            return None
        # Each group of torch's old dimensions must be adjacent and in order in storage; the new ones replace it.
        pieces: list[tuple[int, list[int]]] = []
        for old, new in groups:
            places = [self.axes[dim] for dim in old if self.shape[dim] != 1]
            if not _together(places, self.stored_shape):
                return None
            pieces.append((places[0] if places else -1, new))
        stored_shape: list[int] = []
        axes = [0] * len(shape)
        for _, new in sorted(pieces, key=lambda piece: piece[0]):
            for dim in new:
                axes[dim] = len(stored_shape)
                stored_shape.append(shape[dim])
        return Form(tuple(stored_shape), tuple(axes))


def _channels_last(group: tuple[list[int], list[int]]) -> int:
    """The position of a group of an image's dimensions [N, C, H, W] in channels-last order."""
    return (0, 3, 1, 2)[group[1][0]] if group[1] else -1


def _ascending(places: Sequence[int]) -> bool:
    return all(one < other for one, other in itertools.pairwise(places))


def _together(places: list[int], shape: Shape) -> bool:
    """Whether these positions are adjacent, apart from dimensions of size 1."""
    return all(one < other and math.prod(shape[one + 1 : other]) == 1 for one, other in itertools.pairwise(places))


def matched_groups(old: Shape, new: Shape) -> list[tuple[list[int], list[int]]] | None:
    """Split both shapes into the shortest runs with equal products: which old dimensions become which new ones."""
    if math.prod(old) == 0:
        return None
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        left, right = [], []
        a = b = 1
        if i < len(old):
            a, left, i = old[i], [i], i + 1
        if j < len(new):
            b, right, j = new[j], [j], j + 1
        while a != b:
            if a < b:
                if i >= len(old):
                    return None
                a, i = a * old[i], i + 1
                left.append(i - 1)
            else:
                if j >= len(new):
                    return None
                b, j = b * new[j], j + 1
                right.append(j - 1)
        groups.append((left, right))
    return groups
