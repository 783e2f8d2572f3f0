"""YAML as people and other programs read it: stable order, long texts as blocks, no word that turns into a value."""

from __future__ import annotations

from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """Blocks for texts of several lines; lists are indented."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(data), style="|" if "\n" in data else None)


_Dumper.add_representer(str, _text)
_Dumper.add_multi_representer(str, _text)


def document(value: Any, header: str) -> str:
    """A document under one comment line. Keys stay in the order in which they were put in."""
    body: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=4096)
    return f"# {header}\n{body}"
