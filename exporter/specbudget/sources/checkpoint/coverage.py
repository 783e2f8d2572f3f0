"""Whether each byte of a file's data belongs to one tensor: safetensors allows no overlap and no hole."""

from __future__ import annotations

from array import array


class Coverage:
    """The byte ranges of tensors as their entries come by, within data of `size` bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._end = 0
        self._begins = array("q")
        self._ends = array("q")

    def add(self, begins: list[int], ends: list[int]) -> None:
        """Take the next ranges, at least one; those in the order of their data cost no memory."""
        if begins[0] == self._end and begins[1:] == ends[:-1]:
            self._end = ends[-1]
            return
        self._begins.extend(begins)
        self._ends.extend(ends)

    def first_wrong_byte(self) -> int | None:
        """The first byte that two ranges share or none has; None when all is well."""
        begins, ends, end = self._begins, self._ends, self._end
        # Of ranges with the same beginning the empty ones come first.
        for index in sorted(sorted(range(len(begins)), key=ends.__getitem__), key=begins.__getitem__):
            if begins[index] != end:
                return min(begins[index], end)
            end = ends[index]
        return None if end == self._size else end
