"""What a review asks of whoever holds samples. All findings are made from this alone, so that they cannot differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from specbudget.domain.axis import Axis, Row
from specbudget.domain.reduction import Reduction


class Samples(Protocol):
    """Samples of one stretch of time. Raises SpecbudgetError where they cannot be read."""

    @property
    def kind(self) -> str:
        """What kind of source it is, in a word."""

    @property
    def place(self) -> str:
        """Where it lies; no secrets."""

    @property
    def keeps_alerts(self) -> bool:
        """Whether it knows which alerts fired."""

    def services(self) -> tuple[str, ...]:
        """The services of which there are samples."""

    def interval(self, service: str) -> float | None:
        """Seconds between samples; None without samples."""

    def extent(self, service: str) -> tuple[float, float] | None:
        """About when the first and the last sample were taken."""

    def rows(
        self, name: str, matchers: Mapping[str, str], axis: Axis, reduction: Reduction, lookback: float
    ) -> list[Row]:
        """The series of a name on the wire whose labels are as given, on the axis.

        Each point has the reduction of the samples in (point − lookback, point], NaN where there are none.
        """
