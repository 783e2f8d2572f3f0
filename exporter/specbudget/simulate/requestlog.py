"""The request log: hourly files as SGLang's FileRequestMetricsExporter writes them, and their rotation."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta
from io import TextIOWrapper
from pathlib import Path
from typing import Any


class RequestLog:
    """Appends one JSON line per request to sglang-request-metrics-YYYYMMDD_HH.log and flushes each.

    The hour is local time. The open file is kept until the hour changes, whatever happens to its name.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._file: TextIOWrapper | None = None
        self._name = ""
        self._hours_ahead = 0
        self._rotations = 0

    def write(self, record: dict[str, Any], now: float) -> None:
        """Append one record at `now` (epoch seconds)."""
        hour = datetime.fromtimestamp(now) + timedelta(hours=self._hours_ahead)
        name = f"sglang-request-metrics-{hour:%Y%m%d_%H}.log"
        if self._file is None or name != self._name:
            self.close()
            self._file = (self._folder / name).open("a", encoding="utf-8")
            self._name = name
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def next_hour(self) -> None:
        """From now on use the name of one hour later."""
        self._hours_ahead += 1

    def rotate_by_rename(self) -> None:
        """Rename the current file; writing goes on into the renamed file."""
        if self._file is not None:
            self._rotations += 1
            path = self._folder / self._name
            path.rename(path.with_name(f"{self._name}.{self._rotations}"))

    def rotate_by_copy(self) -> None:
        """Copy the current file and cut it to nothing; writing goes on at its beginning."""
        if self._file is not None:
            self._rotations += 1
            path = self._folder / self._name
            shutil.copyfile(path, path.with_name(f"{self._name}.{self._rotations}"))
            self._file.truncate(0)

    def close(self) -> None:
        """Close the current file."""
        if self._file is not None:
            self._file.close()
            self._file = None
