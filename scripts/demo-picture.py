"""Draws the picture of the README: the demo's own screen, SECONDS into SCENARIO, as an SVG without outside fonts.

Usage: python scripts/demo-picture.py SCENARIO SECONDS OUT.svg
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from specbudget.catalog import series
from specbudget.demo.readings import fetch
from specbudget.demo.screen import screen
from specbudget.demo.tree import running


def main(scenario: str, seconds: float, out: Path) -> None:
    """Runs the demo for a while and writes what it shows then."""
    with tempfile.TemporaryDirectory(prefix="specbudget-") as folder:
        tree_of = running(scenario=scenario, listen=None, folder=Path(folder), seed=0, speed=1.0)
        with tree_of as tree:
            trace: list[float | None] = []
            end = time.monotonic() + seconds
            reading = None
            while time.monotonic() < end:
                tree.check()
                reading = fetch(tree.sidecar_url)
                if reading is not None:
                    length = reading.value(series.ROLLING_ACCEPTANCE_LENGTH, scope="request", window="1m")
                    trace.append(length)
                time.sleep(1.0)
            console = Console(record=True, width=108, file=io.StringIO(), force_terminal=True)
            console.print(screen(tree, scenario, reading, trace[-60:]))
    svg = console.export_svg(title="specbudget demo", theme=MONOKAI)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace(folder, "/tmp/specbudget-demo")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
