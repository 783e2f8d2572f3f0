"""A piece of markup as data: nothing is lost, nothing is added, and what is not whole is an error."""

from __future__ import annotations

import pytest

from specbudget.serve.page.tree import tree


def test_elements_texts_and_attributes() -> None:
    """Tags, attributes and texts in order; the template's line breaks are no text, single spaces are."""
    markup = '<p class="a">one <b>two</b> <i>three</i>\n  four\n</p>\n<br>'
    assert tree(markup) == [
        ["p", {"class": "a"}, "one ", ["b", {}, "two"], " ", ["i", {}, "three"], " four "],
        ["br", {}],
    ]


def test_escaped_text_is_text_again() -> None:
    """What was escaped for the page is the plain text in the tree, in attributes too."""
    assert tree('<p title="&#34;&lt;b&gt;">&lt;script&gt;&amp;</p>') == [["p", {"title": '"<b>'}, "<script>&"]]


def test_svg_keeps_its_capitals() -> None:
    """Names that the parser writes small are as SVG wants them."""
    assert tree('<svg viewBox="0 0 1 1"><use href="#a"/></svg>') == [
        ["svg", {"viewBox": "0 0 1 1"}, ["use", {"href": "#a"}]]
    ]


@pytest.mark.parametrize("markup", ["<p>", "<p></b></p>", "</p>", "<ul><li></ul>"])
def test_what_is_not_closed_is_an_error(markup: str) -> None:
    """A template that is not whole would be another page after an update than before it."""
    with pytest.raises(ValueError, match="clos"):
        tree(markup)
