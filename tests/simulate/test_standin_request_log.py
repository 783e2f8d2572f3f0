"""The request log's files: hourly names, rotation by rename, by copy and by the hour."""

from __future__ import annotations

import re
from datetime import datetime

from specbudget.simulate.requestlog import RequestLog

NOW = datetime(2026, 11, 29, 16, 30).timestamp()


def content(folder) -> dict[str, str]:
    """All files of a folder with their text."""
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_files_are_named_by_local_hour_and_flushed_line_by_line(tmp_path):
    """Each record is on disk at once, in the file of its hour."""
    log = RequestLog(tmp_path)
    log.write({"a": "é"}, NOW)
    assert content(tmp_path) == {"sglang-request-metrics-20261129_16.log": '{"a": "\\u00e9"}\n'}
    log.write({"b": 2}, NOW + 3600)
    assert content(tmp_path)["sglang-request-metrics-20261129_17.log"] == '{"b": 2}\n'
    log.close()


def test_after_a_rename_the_engine_keeps_writing_into_the_renamed_file(tmp_path):
    """The open file follows its inode; only the next hour opens a new one."""
    log = RequestLog(tmp_path)
    log.write({"n": 1}, NOW)
    log.rotate_by_rename()
    log.write({"n": 2}, NOW)
    assert content(tmp_path) == {"sglang-request-metrics-20261129_16.log.1": '{"n": 1}\n{"n": 2}\n'}
    log.next_hour()
    log.write({"n": 3}, NOW)
    assert content(tmp_path)["sglang-request-metrics-20261129_17.log"] == '{"n": 3}\n'
    log.close()


def test_after_a_copy_the_file_starts_again_at_its_beginning(tmp_path):
    """copytruncate leaves the copy whole and the file without a hole."""
    log = RequestLog(tmp_path)
    log.write({"n": 1}, NOW)
    log.rotate_by_copy()
    log.write({"n": 2}, NOW)
    assert content(tmp_path) == {
        "sglang-request-metrics-20261129_16.log.1": '{"n": 1}\n',
        "sglang-request-metrics-20261129_16.log": '{"n": 2}\n',
    }
    log.close()


def test_an_existing_file_is_continued(tmp_path):
    """A second start of the engine appends."""
    for number in (1, 2):
        log = RequestLog(tmp_path)
        log.write({"n": number}, NOW)
        log.close()
    (text,) = content(tmp_path).values()
    assert re.findall(r"\d", text) == ["1", "2"]
