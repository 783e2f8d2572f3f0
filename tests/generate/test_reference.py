"""The committed reference pages are what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbudget.domain.codesign import RULES
from specbudget.generate import reference, rule_page

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", reference.PAGES, ids=lambda page: page.name)
def test_committed_pages_are_true(page: Path) -> None:
    """`make generate` writes them anew."""
    assert (ROOT / page).read_text(encoding="utf-8") == reference.PAGES[page]()


def test_a_stale_page_is_told_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --check nothing is written; without it everything is."""
    monkeypatch.chdir(tmp_path)
    assert reference.main(["--check"]) == 1
    assert "docs/reference/rules.md" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert (reference.main([]), reference.main(["--check"])) == (0, 0)


def test_every_rule_has_a_row_of_the_same_width() -> None:
    """A cell never breaks the table."""
    ids = {f"| `{rule.id}`" for rule in RULES}
    rows = [line for line in rule_page.render().splitlines() if line.startswith(tuple(ids))]
    assert len(rows) == len(RULES)
    assert {row.count(" | ") for row in rows} == {6}


def test_the_page_says_why_missing_taps_differ() -> None:
    """The one difference between families that looks like an accident."""
    text = rule_page.render()
    assert "EAGLE-3 warns" in text
    assert "deliberate" in text
