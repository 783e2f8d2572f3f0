"""Reads samples from the Prometheus text format 0.0.4 and from OpenMetrics text.

An engine's `/metrics` holds a thousand lines of which a monitor needs some dozens. So the reader looks for
the wanted names first, at the speed of one compiled expression over the whole body, and takes apart only the
lines that carry them.

The grammar is the one that Prometheus reads, with the quoted names of UTF-8 metrics:
https://prometheus.io/docs/instrumenting/exposition_formats and
https://prometheus.io/docs/specs/om/open_metrics_spec. Types, help and units are comments here: they are
skipped unread. Native histograms are not part of it.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

_NAME: Final = rb"[a-zA-Z_:][a-zA-Z0-9_:]*+"
_LABEL_NAME: Final = rb"[a-zA-Z_][a-zA-Z0-9_]*+"
_QUOTED: Final = rb'"(?:[^"\\\n]++|\\[^\n])*+"'
_BRACES: Final = rb'\{(?:[^"{}\n]++|' + _QUOTED + rb")*+\}"
_NUMBER: Final = rb"[-+.0-9A-Za-z]++"

# One line, from its first byte to its end. Possessive throughout: no line costs more than one pass.
_LINE: Final = re.compile(
    rb"[ \t]*+(?P<name>%(name)s)?+[ \t]*+(?P<labels>%(braces)s)?+[ \t]*+(?<=[ \t}])(?P<value>%(number)s)"
    rb"(?:[ \t]++(?P<timestamp>%(number)s))?+"
    rb"(?:[ \t]++\#[ \t]++(?P<exemplar_labels>%(braces)s)"
    rb"[ \t]++(?P<exemplar>%(number)s)(?:[ \t]++(?P<exemplar_timestamp>%(number)s))?+)?+"
    rb"[ \t]*+\r?+(?:\n|\Z)" % {b"name": _NAME, b"braces": _BRACES, b"number": _NUMBER}
)
_TERM: Final = re.compile(
    rb"[ \t]*+(?:(?P<bare>%(label_name)s)|(?P<quoted>%(quoted)s))[ \t]*+"
    rb"(?:=[ \t]*+(?P<value>%(quoted)s)[ \t]*+)?+(?:,[ \t]*+|\Z)" % {b"label_name": _LABEL_NAME, b"quoted": _QUOTED}
)
_START: Final = re.compile(rb"[ \t]*+([a-zA-Z_:][a-zA-Z0-9_:]{0,199}+)(?![a-zA-Z0-9_:])")
# Everything but blank lines and comments.
_ANY: Final = re.compile(rb"\n(?![ \t]*+(?:\#|\r?(?:\n|\Z)))")
_ESCAPED: Final = re.compile(r'\\([\\n"])')


class ExpositionError(ValueError):
    """A line that cannot be read.

    The text names the line's number (from 1), the metric where its name is known, and what is wrong; of the
    body it repeats nothing else, so it can be logged and shown.
    """

    def __init__(self, line: int, metric: str | None, problem: str) -> None:
        super().__init__(f"line {line}: {metric}: {problem}" if metric else f"line {line}: {problem}")
        self.line = line
        self.metric = metric


class Sample(NamedTuple):
    """One sample as the body states it.

    `name` is the full name, suffix included. Samples whose label text is the same share one `labels` mapping:
    read it, do not change it. `value` may be infinite or not a number.
    """

    name: str
    labels: Mapping[str, str]
    value: float


def read_samples(text: bytes, wanted: frozenset[str] | None = None) -> Iterator[Sample]:
    """The samples of `text` in its order, those of the `wanted` names or all.

    Timestamps and exemplars are checked and dropped. The whole body is read before the first sample is handed
    out, so a body that fails gives none.

    Raises ExpositionError for a wanted line that breaks the format. Lines of other names are not looked at;
    a line that starts with a brace carries its name inside and is always read.
    """
    body = b"\n" + text
    starts = _ANY if wanted is None else _search(wanted)
    samples: list[Sample] = []
    label_sets: _LabelSets = {}
    for found in starts.finditer(body):
        start = found.start() + 1
        try:
            sample = _read_line(_LINE.match(body, start), label_sets)
        except _Problem as problem:
            named = _START.match(body, start)
            metric = None if named is None else named[1].decode()
            raise ExpositionError(body.count(b"\n", 0, start), metric, str(problem)) from None
        if wanted is None or sample.name in wanted:
            samples.append(sample)
    return iter(samples)


def is_complete(text: bytes, *, openmetrics: bool = False) -> bool:
    """Whether `text` ends as a whole body ends: after a line end, for OpenMetrics after its `# EOF`.

    A body that was cut off can be well-formed up to the cut: a value loses its last digits, a family its last
    lines. An empty body of the text format is whole.
    """
    if openmetrics:
        return text.removesuffix(b"\n").rpartition(b"\n")[2] == b"# EOF"
    return not text or text.endswith(b"\n")


# What the braces of a line hold: the metric name, if it stands there in quotes, and the labels.
_Braces = tuple[str | None, Mapping[str, str]]
_LabelSets = dict[bytes, _Braces]
_NO_BRACES: Final[_Braces] = (None, {})


class _Problem(Exception):
    """What is wrong with a line, in words that hold nothing of the line."""


@lru_cache(maxsize=16)
def _search(wanted: frozenset[str]) -> re.Pattern[bytes]:
    """Finds the line ends before the lines whose names are `wanted` or stand inside the braces."""
    names = rb"|".join(re.escape(name.encode()) for name in sorted(wanted))
    plain = rb"(?:%s)(?![a-zA-Z0-9_:])|" % names if names else rb""
    return re.compile(rb"\n[ \t]*+(?:%s\{)" % plain)


def _read_line(line: re.Match[bytes] | None, label_sets: _LabelSets) -> Sample:
    """The sample of a matched line. `label_sets` keeps what equal label texts of this body were read as."""
    if line is None:
        raise _Problem("not `name{labels} value`")
    name, braces, value, timestamp, exemplar_braces, exemplar, exemplar_timestamp = line.groups()
    number = _number(value)
    if timestamp is not None:
        _number(timestamp)
    if exemplar_braces is not None:
        _read_braces(exemplar_braces)
        _number(exemplar)
        if exemplar_timestamp is not None:
            _number(exemplar_timestamp)
    if braces is None:
        quoted_name, labels = _NO_BRACES
    elif (known := label_sets.get(braces)) is not None:
        quoted_name, labels = known
    else:
        quoted_name, labels = label_sets[braces] = _read_braces(braces)
    if quoted_name is None:
        if name is None:
            raise _Problem("no metric name")
        return Sample(name.decode(), labels, number)
    if name is not None:
        raise _Problem("two metric names")
    return Sample(quoted_name, labels, number)


def _number(token: bytes) -> float:
    try:
        return float(token)
    except ValueError:
        raise _Problem("a value or timestamp is not a number") from None


def _read_braces(braces: bytes) -> _Braces:
    inside = braces[1:-1].strip(b" \t")
    name: str | None = None
    labels: dict[str, str] = {}
    position = 0
    while position < len(inside):
        term = _TERM.match(inside, position)
        if term is None:
            raise _Problem("the labels cannot be read")
        position = term.end()
        bare, quoted, value = term.groups()
        key = bare.decode() if quoted is None else _unquote(quoted)
        if value is None:
            if quoted is None or not key:
                raise _Problem("a label without a value")
            if name is not None:
                raise _Problem("two metric names")
            name = key
        elif not key or key == "__name__":
            raise _Problem("a label name that cannot be used")
        elif key in labels:
            raise _Problem("a label name stands twice")
        else:
            labels[key] = _unquote(value)
    return name, labels


def _unquote(quoted: bytes) -> str:
    r"""The text between the quotes; `\\`, `\"` and `\n` are replaced, other backslashes stay."""
    try:
        text = quoted[1:-1].decode()
    except UnicodeDecodeError:
        raise _Problem("a label is not UTF-8") from None
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text) if "\\" in text else text
