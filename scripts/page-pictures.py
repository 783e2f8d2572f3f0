"""Draws the status page: the demo in SCENARIO, SECONDS after its start, light and dark, on laptop and phone.

Usage: python scripts/page-pictures.py SCENARIO SECONDS OUT_FOLDER

It needs Chromium; the pictures are docs/images/page-{light,dark}-{laptop,phone}.webp.
"""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from specbudget.demo.tree import running

SIZES = {"laptop": (1366, 860, 1.0), "phone": (360, 740, 1.5)}
LIMIT_BYTES = 150_000
"""A repository is cloned more often than its pictures are looked at."""


def main(scenario: str, seconds: float, folder: Path) -> None:
    """Runs the demo, waits, and takes each picture. Raises SystemExit where one is too large."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("no chromium here")
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="specbudget-") as kept,
        running(scenario=scenario, listen=None, folder=Path(kept), seed=0, speed=1.0) as tree,
        sync_playwright() as playwright,
    ):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            tree.check()
            time.sleep(1.0)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, (width, height, scale) in SIZES.items():
            for theme in ("light", "dark"):
                context = browser.new_context(
                    viewport={"width": width, "height": height}, device_scale_factor=scale, color_scheme=theme
                )
                page = context.new_page()
                page.goto(tree.sidecar_url)
                page.wait_for_selector("#connection[data-connection='live']")
                page.wait_for_timeout(1000)
                out = folder / f"page-{theme}-{name}.webp"
                # half of what the same picture takes as PNG; Playwright itself writes no WebP
                shot = context.new_cdp_session(page).send("Page.captureScreenshot", {"format": "webp", "quality": 88})
                out.write_bytes(base64.b64decode(shot["data"]))
                context.close()
                if out.stat().st_size > LIMIT_BYTES:
                    raise SystemExit(f"{out} has {out.stat().st_size} bytes, more than {LIMIT_BYTES}")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
