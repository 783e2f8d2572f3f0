"""`specbudget demo`: starts the tree, shows it, ends it cleanly on Ctrl-C or SIGTERM."""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

from rich.console import Console

from specbudget.demo.screen import watch_live, watch_plain
from specbudget.demo.tree import running
from specbudget.simulate.choice import chosen


def run_demo(*, scenario: str, listen: tuple[str, int] | None, folder: Path | None, seed: int, speed: float) -> int:
    """Runs until interrupted; returns 0.

    Raises ChoiceError for an unknown scenario, DemoError when a process cannot start or ends by itself.
    """
    chosen(scenario, speed)
    # explicit for Ctrl-C too: a shell starts what it runs in the background with that signal ignored
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    with contextlib.ExitStack() as stack:
        kept = (
            folder
            if folder is not None
            else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specbudget-")))
        )
        try:
            tree = stack.enter_context(
                running(scenario=scenario, listen=listen, folder=kept.resolve(), seed=seed, speed=speed)
            )
            console = Console()
            if console.is_terminal:
                watch_live(console, tree, scenario)
            else:
                watch_plain(tree, scenario)
        except KeyboardInterrupt:
            print("ended", file=sys.stderr)
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
