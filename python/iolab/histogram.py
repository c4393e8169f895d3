"""Latencies of a trial: an HdrHistogram as a run file holds it."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

# Cookie, bytes of the counts, normalizing offset, digits, least and greatest value, conversion ratio.
_HEADER = struct.Struct(">iiiiqqd")
_COOKIE = 0x1C849303
# Values below this are exact with three significant digits; above, each doubling has half as many buckets.
_EXACT = 2048
_HALF = _EXACT // 2


class Histogram:
    """Counts of latencies in buckets of 3 significant digits, in ns. Quantiles are those that iolab prints.

    (Other libraries interpolate or return the lower bound of a bucket and differ from it.)
    """

    def __init__(self, counts: dict[int, int]):
        """``counts``: how many values fell into the bucket of each index."""
        self._counts = dict(sorted(counts.items()))

    @classmethod
    def decode(cls, blob: bytes) -> Histogram:
        """Of the blob in table ``latency`` (HdrHistogram, V2, not compressed). Raises :class:`ValueError` where it is none."""
        if len(blob) < _HEADER.size:
            raise ValueError("it is too short for a histogram")
        cookie, length, offset, digits, least, _, _ = _HEADER.unpack_from(blob)
        counts = blob[_HEADER.size :]
        if cookie & ~0xF0 != _COOKIE or length != len(counts) or (offset, digits, least) != (0, 3, 1):
            raise ValueError("it is no histogram of iolab's")
        found: dict[int, int] = {}
        index = 0
        for number in _numbers(counts):
            if number < 0:
                # So many empty buckets.
                index -= number
            else:
                if number:
                    found[index] = number
                index += 1
        return cls(found)

    def __len__(self) -> int:
        """Values that were counted."""
        return sum(self._counts.values())

    def __add__(self, other: Histogram) -> Histogram:
        """The values of both."""
        counts = dict(self._counts)
        for index, count in other._counts.items():
            counts[index] = counts.get(index, 0) + count
        return Histogram(counts)

    def buckets(self) -> Iterator[tuple[int, int, int]]:
        """Least and greatest value of each bucket that counted any, ns, and how many it counted."""
        for index, count in self._counts.items():
            low, width = _bucket(index)
            yield low, low + width - 1, count

    def quantile(self, q: float) -> int:
        """The quantile ``q`` (0 to 1), ns: the greatest value of the bucket in which it lies.

        Raises :class:`ValueError` where nothing was counted, or ``q`` is none.
        """
        if not 0 <= q <= 1:
            raise ValueError(f"a quantile lies between 0 and 1: {q}")
        rank = max(1, math.ceil(q * len(self)))
        seen = 0
        for low, high, count in self.buckets():
            seen += count
            if seen >= rank:
                return low if q == 0 else high
        raise ValueError("nothing was counted")

    @property
    def mean(self) -> float:
        """Mean, ns: each value counts as the middle of its bucket."""
        total = len(self)
        if not total:
            raise ValueError("nothing was counted")
        return sum(((low + (high - low + 1) // 2) * count / total) for low, high, count in self.buckets())

    @property
    def max(self) -> int:
        """Greatest value, ns."""
        return self.quantile(1)


def _numbers(data: bytes) -> Iterator[int]:
    """Whole numbers in the LEB128 of HdrHistogram: seven bits a byte, the ninth byte has eight, sign in the last bit."""
    at = 0
    while at < len(data):
        number = 0
        for place in range(9):
            if at == len(data):
                raise ValueError("the histogram ends within a count")
            byte = data[at]
            at += 1
            if place == 8:
                number |= byte << 56
                break
            number |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                break
        yield (number >> 1) ^ -(number & 1)


def _bucket(index: int) -> tuple[int, int]:
    """Least value and width of a bucket."""
    if index < _EXACT:
        return index, 1
    shift = (index >> 10) - 1
    return ((index & (_HALF - 1)) + _HALF) << shift, 1 << shift
