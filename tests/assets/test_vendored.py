"""The front-end files: vendored ones are what their table says, and nothing reaches for another host."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import specbudget.assets
from specbudget.assets import CONTENT_TYPES, asset

FOLDER = Path(specbudget.assets.__file__).parent
ROWS = re.findall(
    r"^\| `(uplot/[^`]+)` \| ([^|]+) \| ([\d.]+) \| [^|]+ \| ([^|]+) \| `([0-9a-f]{64})` \|$",
    (FOLDER / "README.md").read_text(),
    re.M,
)
OWN = sorted(path.name for path in FOLDER.iterdir() if path.suffix.removeprefix(".") in CONTENT_TYPES)


def test_every_vendored_file_is_the_one_of_its_row() -> None:
    """Each file in the vendored folder has a row with its digest, and each row its file."""
    digests = {f"uplot/{p.name}": hashlib.sha256(p.read_bytes()).hexdigest() for p in (FOLDER / "uplot").iterdir()}
    assert digests == {name: digest for name, _, _, _, digest in ROWS}
    assert {(package, licence) for _, package, _, licence, _ in ROWS} == {("uPlot", "MIT")}


def test_the_licence_of_what_is_vendored_is_there() -> None:
    """The licence's own text stands beside the code, and the code names the version of the table."""
    assert "MIT License" in asset("uplot/LICENSE")
    assert f"v{ROWS[0][2]}" in asset("uplot/uPlot.iife.min.js")[:200]


@pytest.mark.parametrize("name", OWN)
def test_our_own_files_write_no_markup_and_ask_no_other_host(name: str) -> None:
    """No markup is made from text, no code from text, no style attribute, no address of another host."""
    text = asset(name).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"\.(?:innerHTML|outerHTML|insertAdjacentHTML)|document\.write|\beval\(|new Function", text)
    assert not re.search(r"setAttribute\(\s*[\"']style", text)
    assert not re.search(r"(?:https?:)?//[\w-]+\.\w", text)
