"""`specbudget review` as people type it: exit codes, one line per problem, JSON that a script reads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.recordings import kept_rows, recording, write_history

from specbudget.cli import main
from specbudget.history.writer import HistoryWriter


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float, float]:
    folder = tmp_path_factory.mktemp("state")
    return (folder, *write_history(recording("acceptance-drop"), folder))


def asked(kept: tuple[Path, float, float], *more: str) -> list[str]:
    folder, start, end = kept
    return ["review", "--state", str(folder), "--start", str(start), "--end", str(end), *more]


def test_the_json_names_the_cause_and_the_sources(kept: tuple[Path, float, float], tmp_path: Path) -> None:
    """The keys of the contract, the planted cause first, exit 0."""
    out = tmp_path / "review.json"
    assert main(asked(kept, "--json", str(out))) == 0
    told = json.loads(out.read_text())
    assert set(told) == {"service", "start", "end", "findings", "sources"}
    assert told["service"] == "ling-flash-chat"
    first = told["findings"][0]
    assert set(first) == {"id", "line", "cause", "title", "evidence", "ruled_out", "start", "end"}
    assert first["cause"] == "acceptance_drop"
    assert told["start"] <= first["start"] < first["end"] <= told["end"] + 15
    assert told["sources"][0]["kind"] == "history"


def test_the_findings_are_also_told_on_the_terminal(
    kept: tuple[Path, float, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line each, so that nobody has to open a file to learn what it was."""
    assert main(asked(kept, "--json", str(tmp_path / "r.json"))) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[0].startswith("acceptance: Acceptance length fell from 4.5")
    assert told.err == ""


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--service", "other", "--json", "x"], "--service other: not in"),
        ([], "nothing to write: give --out"),
        (["--json", "/no/such/folder/x"], "--json /no/such/folder/x: cannot be written"),
        (["--json", "x", "--requests", "/no/such"], "--requests /no/such: no such folder"),
        (["--json", "x", "--log", "/no/such.log"], "--log /no/such.log: no such file"),
        (["--json", "x", "--start", "yesterday"], "--start yesterday: write RFC 3339"),
        (["--json", "x", "--start", "now-1m", "--end", "now"], "no specbudget sidecar was recorded"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_2(
    kept: tuple[Path, float, float],
    more: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Naming the option and the fix; nothing is written."""
    monkeypatch.chdir(tmp_path)
    if "yesterday" not in more and "now-1m" not in more:
        assert main(asked(kept, *more)) == 2
    else:
        folder = str(kept[0])
        assert main(["review", "--state", folder, *(["--end", "now"] if "--end" not in more else []), *more]) == 2
    told = capsys.readouterr()
    assert says in told.err
    assert told.err.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_several_services_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With one line that names them; with --service it goes on."""
    rows = kept_rows(recording("steady"))
    for service in ("chat", "code"):
        writer = HistoryWriter(tmp_path)
        writer.write(
            [
                (
                    at,
                    {
                        (name, tuple((k, service if k == "specbudget_service" else v) for k, v in labels)): value
                        for (name, labels), value in row.items()
                    },
                )
                for at, row in [(at + (0.5 if service == "code" else 0.0), row) for at, row in rows]
            ]
        )
        writer.close()
    stretch = ["--start", str(rows[0][0]), "--end", str(rows[-1][0]), "--json", str(tmp_path / "out.json")]
    assert main(["review", "--state", str(tmp_path), *stretch]) == 2
    assert "give --service, one of: chat, code" in capsys.readouterr().err
    assert main(["review", "--state", str(tmp_path), *stretch, "--service", "code"]) == 0
    told = json.loads((tmp_path / "out.json").read_text())
    assert told["service"] == "code"
    assert told["findings"][0]["cause"] == "nothing"


def test_a_source_must_be_given() -> None:
    """Prometheus or a state folder, and not both."""
    for sources in ([], ["--state", "a", "--prometheus", "http://b"]):
        with pytest.raises(SystemExit) as ended:
            main(["review", *sources, "--start", "now-1h", "--json", "x"])
        assert ended.value.code == 2


def test_no_traceback_for_a_folder_that_is_a_file(tmp_path: Path) -> None:
    """As a process: one line on stderr."""
    (tmp_path / "history.sqlite").write_bytes(b"no database" * 100)
    command = [
        sys.executable,
        "-m",
        "specbudget",
        "review",
        "--state",
        str(tmp_path),
        "--start",
        "now-1h",
        "--json",
        "x",
    ]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False)
    assert told.returncode == 2
    assert told.stderr.count("\n") == 1
    assert "history cannot be read" in told.stderr


def test_logs_tell_of_a_service_that_no_sidecar_saw(kept: tuple[Path, float, float], tmp_path: Path) -> None:
    """Two starts, the second with a smaller pool, from the engine's log alone."""
    log = Path(__file__).parents[1] / "fixtures" / "review_logs" / "two_starts.log"
    out = tmp_path / "out.json"
    stretch = ["--start", "2026-12-01T03:40:00Z", "--end", "2026-12-01T03:50:00Z", "--json", str(out)]
    logs = ["--log", str(log), "--log-timezone", "UTC", "--service", "unseen"]
    assert main(["review", "--state", str(kept[0]), *stretch, *logs]) == 0
    causes = [finding["cause"] for finding in json.loads(out.read_text())["findings"]]
    assert causes == ["capacity_shrank", "engine_restart"]
