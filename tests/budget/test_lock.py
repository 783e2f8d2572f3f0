"""budget.lock: strict reading, exact writing, never half a file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbudget.budget.lock import (
    Lock,
    LockedAcceptance,
    LockedFingerprints,
    LockedModel,
    load_lock,
    lock_path,
    write_lock,
)
from specbudget.budget.reading import MAX_BYTES
from specbudget.domain.pair_change import Change, Fingerprints, RecheckPlan, compare, pair_change
from specbudget.errors import BudgetError

HERE = Path(__file__).parent
INVALID = sorted((HERE / "invalid_lock").glob("*.lock"))


def problems(path: Path) -> list[str]:
    """The lines that a person sees, the file's name cut off."""
    with pytest.raises(BudgetError) as caught:
        load_lock(path)
    return [str(problem).removeprefix(f"{path}:").lstrip() for problem in caught.value.problems]


def full() -> Lock:
    """The lock that uses every key."""
    loaded = load_lock(HERE / "full.lock")
    assert loaded is not None
    return loaded.lock


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_every_rule_has_a_bad_file_and_one_clear_line(path: Path) -> None:
    """The file breaks one rule; the line names place, key and fix, and nothing else is said."""
    assert problems(path) == path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()


def test_the_full_lock_is_read() -> None:
    """Every key has its type; a digest of digits stays text."""
    lock = full()
    assert lock.target.fingerprints.whole == "0123456789012345"
    assert lock.target.fingerprints.tokenizer == "12345e67"
    assert (lock.engine.version, lock.engine.num_draft_tokens) == ("0.5.23", 9)
    assert lock.acceptance["code"].length == 5.2
    assert [point.running for point in lock.break_even] == [1, 64]


def test_the_lock_lies_beside_the_budget() -> None:
    """`budget.lock` in the folder of the budget file."""
    assert lock_path(Path("/etc/specbudget/budget.yaml")) == Path("/etc/specbudget/budget.lock")


def test_a_service_without_a_lock_has_none(tmp_path: Path) -> None:
    """No file is no fault; a folder in its place is one."""
    assert load_lock(tmp_path / "budget.lock") is None
    assert problems(tmp_path) == ["cannot be read: Is a directory"]


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    """Writing and reading again changes nothing, not even digests that look like numbers."""
    path = tmp_path / "budget.lock"
    write_lock(path, full())
    loaded = load_lock(path)
    assert loaded is not None
    assert loaded.lock == full()
    assert path.read_text().startswith("# The pair that passed its checks.")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@settings(max_examples=100, deadline=None)
@given(
    digest=st.text(alphabet="0123456789abcdef", min_size=8, max_size=64),
    architecture=st.text(max_size=40),
    config=st.dictionaries(st.text(max_size=40), st.text(max_size=40), max_size=5),
    length=st.floats(min_value=1, max_value=1024),
)
def test_any_lock_survives_the_file(
    tmp_path_factory: pytest.TempPathFactory, digest: str, architecture: str, config: dict[str, str], length: float
) -> None:
    """Whatever a digest or a name looks like, YAML gives back the same."""
    lock = Lock(
        lock=1,
        service="chat",
        approved_at="2026-01-31T12:00:00Z",
        target=LockedModel(fingerprints=LockedFingerprints(whole=digest), architecture=architecture, config=config),
        acceptance={"default": LockedAcceptance(length=length, verify_steps=10)},
    )
    path = tmp_path_factory.mktemp("lock") / "budget.lock"
    write_lock(path, lock)
    loaded = load_lock(path)
    assert loaded is not None
    assert loaded.lock == lock


def test_a_link_keeps_pointing_where_it_did(tmp_path: Path) -> None:
    """The file behind the link is replaced."""
    place = tmp_path / "shared"
    place.mkdir()
    (place / "real.lock").write_text("old")
    path = tmp_path / "budget.lock"
    path.symlink_to(place / "real.lock")
    write_lock(path, full())
    assert path.is_symlink()
    assert (place / "real.lock").read_text() != "old"
    assert os.listdir(place) == ["real.lock"]


def test_a_lock_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    """A folder in the file's place is told in one line, and nothing is left behind."""
    path = tmp_path / "budget.lock"
    path.mkdir()
    with pytest.raises(BudgetError, match=r"budget\.lock: cannot be written: .*: make its folder writable"):
        write_lock(path, full())
    assert os.listdir(tmp_path) == ["budget.lock"]
    with pytest.raises(BudgetError, match="cannot be written: No such file"):
        write_lock(tmp_path / "missing" / "budget.lock", full())


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    """More than 1 MiB is never parsed."""
    path = tmp_path / "budget.lock"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    assert problems(path) == ["larger than 1 MiB: this is no lock"]


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_no_content_is_a_traceback(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Any bytes are a lock or a told problem."""
    path = tmp_path_factory.mktemp("lock") / "budget.lock"
    path.write_bytes(content)
    with pytest.raises(BudgetError):
        load_lock(path)


def test_a_lock_answers_what_is_due() -> None:
    """The target was changed since, the drafter was not: the acceptance check is due."""
    lock = full()
    found = pair_change(
        target_before=lock.target_fingerprints,
        drafter_before=lock.drafter_fingerprints,
        target=Fingerprints(whole="ffff6666ffff6666"),
        drafter=Fingerprints(whole="eeee5555eeee5555", tokenizer="9999"),
    )
    assert found.plan is RecheckPlan.ACCEPTANCE


def test_a_drafter_within_the_target_has_its_fingerprints() -> None:
    """A lock without a drafter means one checkpoint for both."""
    lock = full().model_copy(update={"drafter": None})
    assert compare(lock.drafter_fingerprints, lock.target_fingerprints).change is Change.SAME
