"""The exposition reader against the Prometheus client library's parsers, on real engine bodies and made ones."""

import math
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from specbudget.sources.exposition import ExpositionError, Sample, is_complete, read_samples

FIXTURES = Path(__file__).parents[1] / "fixtures"
BODIES = sorted(FIXTURES.rglob("*.prom"))
LINES = sorted(
    {
        line
        for path in (FIXTURES / "exposition").glob("*.prom")
        for line in path.read_bytes().splitlines()
        if line and not line.startswith(b"#")
    }
)

Reading = list[tuple[str, dict[str, str], float | str]]


def comparable(samples: Iterable[Sample]) -> Reading:
    """Samples as values that compare equal when they are: not-a-number as a word, integers as floats."""
    return [
        (s.name, dict(s.labels), "NaN" if math.isnan(s.value) else float(s.value))
        for s in samples
    ]  # fmt: skip


def ours(body: bytes) -> Reading | None:
    """What the reader makes of a body; None when it refuses it."""
    try:
        return comparable(read_samples(body))
    except ExpositionError:
        return None


def library(body: bytes) -> Reading | None:
    """What the client library's text parser makes of a body; None when it refuses it."""
    try:
        return comparable(sample for family in text_families(body.decode()) for sample in family.samples)
    except (ValueError, IndexError):  # IndexError: its own failure on an empty name
        return None


# Where the library takes what Prometheus does not, per line with the contents of quotes taken out. It says of
# itself that it is laxer than Prometheus' parser; a reader that follows it would report series that no
# Prometheus shows.
LIBRARY_IS_LAX = {
    "the metric name before a brace is not checked": rb"^[ \t]*(?![a-zA-Z_:][a-zA-Z0-9_:]*[ \t]*\{)[^{]+\{",
    "vertical, Unicode and other control blanks are blanks, Unicode digits are digits": rb"[^\t -~]",
    "a bare label name may hold a colon or an escaped line end": rb"[{,][^\"{},=]*[:\\]",
    "a comma may stand before the first label": rb"\{[ \t]*,",
    "a quoted label name may be empty": rb'"E"[ \t]*=',
    "a label without a value is passed over": rb"=[ \t]*[,}]",
    "a backslash takes a quote's meaning away outside of quotes too": rb'\\"',
    "the name may be given as a label called __name__": rb'[{,][ \t]*"?__name__',
    "any words may stand between the value and the last number": (
        rb"(?:\}|^[^{]*?[ \t])[ \t]*[^ \t]+[ \t]+[^ \t]+[ \t]+[^ \t]"
    ),
    "a lone word is split into a name and nan or inf": rb"^[ \t]*[a-zA-Z_:]+[ \t]*$",
}
# Where it refuses what Prometheus takes.
LIBRARY_IS_STRICT = {
    "label names that start with two underscores": rb'[{,][ \t]*"?__',
    "blanks and tabs mixed between value and timestamp": rb"[ ][^ ]*\t|\t[^\t]*[ ]",
    "comments are read, and must be well-formed": rb"^[ \t]*\#",
}


def explained(line: bytes, reasons: dict[str, bytes]) -> bool:
    """Whether one of the known differences applies to the line."""
    bare = re.sub(rb'"((?:[^"\\]|\\.)*)"', lambda found: b'"Q"' if found[1] else b'"E"', line.rstrip(b"\r\n"))
    return any(re.search(pattern, bare) for pattern in reasons.values())


@pytest.mark.parametrize("path", BODIES, ids=lambda path: path.name)
def test_engine_body_reads_as_the_library_reads_it(path: Path) -> None:
    """Every sample of every engine body in the fixtures has the name, labels and value that the library gives."""
    body = path.read_bytes()
    assert ours(body) == library(body)
    assert len(ours(body) or []) == sum(1 for line in body.splitlines() if line.strip() and not line.startswith(b"#"))


@pytest.mark.parametrize("path", BODIES, ids=lambda path: path.name)
def test_wanted_names_are_the_same_samples_as_all_of_them_sifted(path: Path) -> None:
    """Asking for every third name gives exactly those samples, in the body's order."""
    body = path.read_bytes()
    everything = list(read_samples(body))
    wanted = frozenset(sorted({s.name for s in everything})[::3])
    assert comparable(read_samples(body, wanted)) == comparable(s for s in everything if s.name in wanted)


LEGAL = [
    ("a bare value", b"a 1\n", [("a", {}, 1.0)]),
    ("no line end after the last line", b"a 1", [("a", {}, 1.0)]),
    ("Windows line ends", b"a 1\r\n\r\nb 2\r\n", [("a", {}, 1.0), ("b", {}, 2.0)]),
    ("blanks and tabs wherever they may stand", b' \ta \t{ x\t= "y" ,\tz ="w" } \t1\t 5 \t\n',
        [("a", {"x": "y", "z": "w"}, 1.0)]),
    ("no blank between brace and value", b'a{x="y"}1\n', [("a", {"x": "y"}, 1.0)]),
    ("an empty label set", b"a{} 1\n", [("a", {}, 1.0)]),
    ("a trailing comma", b'a{x="y",} 1\n', [("a", {"x": "y"}, 1.0)]),
    ("the three escapes", rb'a{x="q\"b\\s\nn"} 1', [("a", {"x": 'q"b\\s\nn'}, 1.0)]),
    ("an unknown escape stays as it is", rb'a{x="\d"} 1', [("a", {"x": r"\d"}, 1.0)]),
    ("signs of the format inside a value", b'a{x="}{,=# 1\t"} 2\n', [("a", {"x": "}{,=# 1\t"}, 2.0)]),
    ("UTF-8 inside a value", 'a{x="γ−×"} 1'.encode(), [("a", {"x": "γ−×"}, 1.0)]),
    ("the infinities and not-a-number", b"a +Inf\nb -Inf\nc NaN\n",
        [("a", {}, math.inf), ("b", {}, -math.inf), ("c", {}, "NaN")]),
    ("exponents and signs", b"a 1.5e+3\nb -2E-2\nc +.5\n", [("a", {}, 1500.0), ("b", {}, -0.02), ("c", {}, 0.5)]),
    ("a number beyond a float's digits", b"a 9007199254740993\n", [("a", {}, 9007199254740992.0)]),
    ("a timestamp", b"a 1 1700000000000\n", [("a", {}, 1.0)]),
    ("an OpenMetrics timestamp with a fraction", b"a 1 1700000000.25\n# EOF\n", [("a", {}, 1.0)]),
    ("an exemplar, with labels and without", b'a_total{x="y"} 1 # {id="}"} 0.5 17.1\nb_total 2 # {} 1\n',
        [("a_total", {"x": "y"}, 1.0), ("b_total", {}, 2.0)]),
    ("comments of every kind", b"#\n# hello\n  # HELP\n#TYPE a gauge\na 1\n", [("a", {}, 1.0)]),
    ("a quoted metric name", b'{"a.b",x="y"} 1\n{"c d"} 2\n', [("a.b", {"x": "y"}, 1.0), ("c d", {}, 2.0)]),
    ("quoted label names", b'a{"x.y"="z"} 1\n', [("a", {"x.y": "z"}, 1.0)]),
    ("a label name with two underscores in front", b'a{__x="y"} 1\n', [("a", {"__x": "y"}, 1.0)]),
    ("nothing at all", b"", []),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), [case[1:] for case in LEGAL], ids=[case[0] for case in LEGAL])
def test_what_the_format_allows_is_read(body: bytes, expected: Reading) -> None:
    """Each liberty of the two formats gives the samples that it stands for."""
    assert ours(body) == expected


ILLEGAL = [
    ("a name without a value", b"a\n", "line 1: a: not `name{labels} value`"),
    ("a value that is no number", b"x 1\na one\n", "line 2: a: a value or timestamp is not a number"),
    ("a hexadecimal value", b"a 0x1p4\n", "line 1: a: a value or timestamp is not a number"),
    ("an underscore in a number", b"a 1_000\n", "line 1: a: not `name{labels} value`"),
    ("a timestamp that is no number", b"a 1 now\n", "line 1: a: a value or timestamp is not a number"),
    ("a word after the timestamp", b"a 1 2 3\n", "line 1: a: not `name{labels} value`"),
    ("an unclosed brace", b'a{x="y" 1\n', "line 1: a: not `name{labels} value`"),
    ("an unclosed quote", b'a{x="y} 1\nb 2\n', "line 1: a: not `name{labels} value`"),
    ("a label without a value", b"a{x=} 1\n", "line 1: a: the labels cannot be read"),
    ("a label value without quotes", b"a{x=y} 1\n", "line 1: a: the labels cannot be read"),
    ("labels without a comma between", b'a{x="y"z="w"} 1\n', "line 1: a: the labels cannot be read"),
    ("two commas", b'a{x="y",,z="w"} 1\n', "line 1: a: the labels cannot be read"),
    ("a comma in front", b'a{,x="y"} 1\n', "line 1: a: the labels cannot be read"),
    ("a colon in a label name", b'a{x:y="z"} 1\n', "line 1: a: the labels cannot be read"),
    ("the same label twice", b'a{x="y",x="z"} 1\n', "line 1: a: a label name stands twice"),
    ("the metric name as a label", b'a{__name__="b"} 1\n', "line 1: a: a label name that cannot be used"),
    ("an empty label name", b'a{""="b"} 1\n', "line 1: a: a label name that cannot be used"),
    ("a name before and a name within the braces", b'a{"b"} 1\n', "line 1: a: two metric names"),
    ("two names within the braces", b'{"a","b"} 1\n', "line 1: two metric names"),
    ("braces without a name", b'{x="y"} 1\n', "line 1: no metric name"),
    ("a name that starts with a digit", b"1a 1\n", "line 1: not `name{labels} value`"),
    ("a label that is not UTF-8", b'a{x="\xff"} 1\n', "line 1: a: a label is not UTF-8"),
    ("an exemplar without braces", b"a 1 # 2\n", "line 1: a: not `name{labels} value`"),
    ("an exemplar whose labels are broken", b"a 1 # {x} 2\n", "line 1: a: a label without a value"),
    ("an exemplar whose value is no number", b"a 1 # {} x\n", "line 1: a: a value or timestamp is not a number"),
    ("a carriage return within a line", b"a 1\r2\n", "line 1: a: not `name{labels} value`"),
]


@pytest.mark.parametrize(("body", "message"), [case[1:] for case in ILLEGAL], ids=[case[0] for case in ILLEGAL])
def test_what_the_format_forbids_is_refused_with_line_and_name(body: bytes, message: str) -> None:
    """Each break of the format is an error that names the line and the metric and says what is wrong."""
    with pytest.raises(ExpositionError) as caught:
        read_samples(body)
    assert str(caught.value) == message


def test_nothing_of_a_bad_line_but_its_name_is_repeated() -> None:
    """Label texts and values of a bad line reach neither the error's text nor its arguments nor its cause."""
    with pytest.raises(ExpositionError) as caught:
        read_samples(b'a{x="private"} private\n')
    error = caught.value
    assert (error.line, error.metric, error.__cause__) == (1, "a", None)
    assert "private" not in f"{error!r}{error.args}{vars(error)}"


def test_a_name_without_end_is_not_repeated() -> None:
    """A metric name of a million letters is left out of the error's text."""
    with pytest.raises(ExpositionError) as caught:
        read_samples(b"a" * 1_000_000)
    assert str(caught.value) == "line 1: not `name{labels} value`"


def test_bad_lines_of_other_names_are_no_error() -> None:
    """A body is read past broken lines that nobody asked for, and refused for one that somebody did."""
    body = b'a{x="y"} 1\nb{x="} 1\na2{ 1\nnot a line\na{x="z"} 2\n'
    assert [s.value for s in read_samples(body, frozenset({"a"}))] == [1.0, 2.0]
    with pytest.raises(ExpositionError, match="line 2: b:"):
        read_samples(body, frozenset({"a", "b"}))


def test_wanted_names_are_whole_names() -> None:
    """A name is found when it is the line's whole name, not its beginning, and also where it stands in quotes."""
    body = b'a 1\nab 2\na_total 3\na:b 4\nx{y="\\na 5"} 6\n{"a",x="y"} 7\n{"b.c"} 8\n\ta 9\n'
    assert [s.value for s in read_samples(body, frozenset({"a"}))] == [1.0, 7.0, 9.0]
    assert [s.value for s in read_samples(body, frozenset({"b.c"}))] == [8.0]
    assert list(read_samples(body, frozenset())) == []


def test_no_sample_is_handed_out_of_a_body_that_fails_later() -> None:
    """The error comes from the call itself, before a caller has acted on the first lines."""
    with pytest.raises(ExpositionError):
        read_samples(b"a 1\na x\n")


COMPLETE = [
    ("a text body with its line end", b"a 1\n", False, True),
    ("a text body cut within a value", b"a 1\nb 12", False, False),
    ("an empty text body", b"", False, True),
    ("an OpenMetrics body with its end mark", b"a 1\n# EOF\n", True, True),
    ("an OpenMetrics body whose last line has no line end", b"a 1\n# EOF", True, True),
    ("an OpenMetrics body of nothing but the mark", b"# EOF\n", True, True),
    ("an OpenMetrics body cut at a line end", b"a 1\n", True, False),
    ("an OpenMetrics body whose last comment ends like the mark", b"a 1\n## EOF\n", True, False),
    ("an empty OpenMetrics body", b"", True, False),
]


@pytest.mark.parametrize(
    ("body", "openmetrics", "complete"), [case[1:] for case in COMPLETE], ids=[case[0] for case in COMPLETE]
)
def test_a_cut_body_can_be_told(body: bytes, openmetrics: bool, complete: bool) -> None:
    """A body counts as whole exactly when it ends as its format says."""
    assert is_complete(body, openmetrics=openmetrics) is complete


blanks = st.text(" \t", max_size=2)
names = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,12}", fullmatch=True)
label_names = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,8}", fullmatch=True)
label_values = st.text('\\"\n{}=,# \taz09né×漢🚀', max_size=12)
numbers = st.floats().map(repr) | st.integers(-(10**18), 10**18).map(str) | st.sampled_from(["+Inf", "-Inf", "NaN"])


def escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


@st.composite
def text_lines(draw: st.DrawFn) -> tuple[str, tuple[str, dict[str, str], float]]:
    """A line of the text format, with the liberties that it allows, and the sample that it stands for."""
    name, labels, value = draw(names), draw(st.dictionaries(label_names, label_values, max_size=4)), draw(numbers)
    pairs = [f'{draw(blanks)}{k}{draw(blanks)}={draw(blanks)}"{escaped(v)}"{draw(blanks)}' for k, v in labels.items()]
    comma = draw(st.sampled_from(["", ","])) if pairs else ""
    braces = "{" + ",".join(pairs) + comma + "}" if labels or draw(st.booleans()) else " "
    timestamp = draw(st.sampled_from(["", " 1700000000000", "  17"]))
    line = f"{draw(blanks)}{name}{draw(blanks)}{braces} {value}{timestamp}{draw(blanks)}"
    return line, (name, labels, float(value))


@settings(deadline=None)
@given(st.lists(text_lines(), max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_any_legal_text_body_reads_as_the_library_reads_it(
    lines: list[tuple[str, tuple[str, dict[str, str], float]]], line_end: str
) -> None:
    """Whatever a writer may write is read as meant, and as the library reads it."""
    body = "".join(line + line_end for line, _ in lines).encode()
    assert ours(body) == comparable(Sample(*sample) for _, sample in lines) == library(body)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,6}", fullmatch=True),
        st.dictionaries(
            st.tuples(label_names, label_values), st.floats(min_value=0, allow_infinity=False), min_size=1, max_size=3
        ),
        max_size=4,
    ),
    st.sampled_from(["", " 1700000000", " 1700000000.25"]),
    st.sampled_from(["", ' # {id="a}b"} 0.5', " # {} 1 1700000000.5"]),
)
def test_any_legal_openmetrics_body_reads_as_the_library_reads_it(
    families: dict[str, dict[tuple[str, str], float]], timestamp: str, exemplar: str
) -> None:
    """Counters with timestamps and exemplars give the samples that the library's OpenMetrics parser gives."""
    lines = []
    for name, samples in families.items():
        lines.append(f"# TYPE {name} counter")
        lines += [f'{name}_total{{{k}="{escaped(v)}"}} {x}{timestamp}{exemplar}' for (k, v), x in samples.items()]
    body = "\n".join([*lines, "# EOF\n"])
    assert is_complete(body.encode(), openmetrics=True)
    assert ours(body.encode()) == comparable(s for family in openmetrics_families(body) for s in family.samples)


edits = st.tuples(
    st.sampled_from(["insert", "replace", "delete", "cut"]),
    st.integers(0, 400),
    st.sampled_from([bytes([c]) for c in b'\\"{}=,# \t\r.:_1eN+-\x00\x0b\x1c\x80\xc3'])
    | st.binary(min_size=1, max_size=2),
)


def edited(line: bytes, changes: list[tuple[str, int, bytes]]) -> bytes:
    """The line after the changes, each at its place modulo the length; line ends are not put in."""
    for kind, place, piece in changes:
        at = place % (len(line) + 1)
        rest = line[at:] if kind == "insert" else b"" if kind == "cut" else line[at + 1 :]
        line = line[:at] + (piece if kind in ("insert", "replace") else b"") + rest
    return line.replace(b"\n", b" ")


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(LINES), st.lists(edits, min_size=1, max_size=3))
@example(b"nan", [])
@example(b"a 1 2 3", [])
@example(b'a{x="y",=} 1', [])
@example(b'a{__x="y"} 1', [])
@example(b"process_resident_memory_bytes2.5", [])
@example(b"a 1 #\t{} 2", [])
def test_a_damaged_engine_line_reads_as_the_library_reads_it_but_for_its_known_errors(
    line: bytes, changes: list[tuple[str, int, bytes]]
) -> None:
    """After any few changed bytes both refuse the line or both read the same, but for the differences listed here."""
    line = edited(line, changes)
    mine, theirs = ours(line), library(line)
    if mine != theirs:
        assert explained(line, LIBRARY_IS_STRICT if theirs is None else LIBRARY_IS_LAX)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([path for path in BODIES if path.parent.name == "exposition"]),
    st.integers(0),
    st.binary(max_size=3),
)
def test_a_damaged_body_gives_samples_or_one_error(path: Path, place: int, piece: bytes) -> None:
    """Bytes overwritten anywhere in a real body end in samples or in an ExpositionError, in nothing else."""
    body = path.read_bytes()
    at = place % len(body)
    ours(body[:at] + piece + body[at + len(piece) :])
