"""What the repository as a whole promises: its files, its targets, its locks, its words."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def repository_files() -> list[Path]:
    """Every file of the checkout that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True, timeout=30,
    ).stdout  # fmt: skip
    return [path for name in listed.decode().split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", ".ci/run", "Dockerfile"])
def test_the_files_that_a_newcomer_looks_for_are_there(name: str) -> None:
    """Each is there and holds more than a title."""
    assert len((ROOT / name).read_text()) > 100


def test_the_pipeline_runs_what_a_contributor_runs() -> None:
    """`.ci/run` can be executed and calls `make test`."""
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_make_help_lists_every_target() -> None:
    """`make` and `make help` print one line for each target that is meant to be called."""
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^\.PHONY: (.+)$", makefile, re.M)
    assert {"setup", "run", "test", "format", "generate", "lock", "bench", "clean", "help"} <= set(targets)
    # Without what a make that runs this test hands down, such as an option to print no commands.
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    for command in (["make"], ["make", "help"]):
        said = subprocess.run(
            command, cwd=ROOT, env=plain, capture_output=True, text=True, check=True, timeout=30
        ).stdout
        assert [line.split()[0] for line in said.splitlines()] == targets
        assert all(len(line.split()) > 2 for line in said.splitlines())


@pytest.mark.parametrize("lock", ["runtime.txt", "dev.txt"])
def test_lock_files_name_no_address_and_hash_everything(lock: str) -> None:
    """A lock holds exact versions and hashes only: whichever registry the machine uses, the packages are the same."""
    text = (ROOT / "requirements" / lock).read_text()
    assert "://" not in text
    assert not re.search(r"^\s*-", re.sub(r"^ +--hash=sha256:[0-9a-f]{64}( \\)?$", "", text, flags=re.M), re.M)
    requirements = re.findall(r"^[A-Za-z0-9].*?(?=^[A-Za-z0-9]|\Z)", text, re.M | re.S)
    assert len(requirements) > 10
    for requirement in requirements:
        assert re.match(r"[A-Za-z0-9._-]+==\S+", requirement)
        assert "--hash=sha256:" in requirement


def test_every_direct_dependency_is_locked_and_has_its_reason() -> None:
    """Each runtime dependency of pyproject.toml stands in the lock and in CONTRIBUTING.md with a reason."""
    lock = (ROOT / "requirements" / "runtime.txt").read_text().lower()
    contributing = (ROOT / "CONTRIBUTING.md").read_text().lower()
    for dependency in PROJECT["dependencies"]:
        name = re.split(r"[<>=!~\[; ]", dependency)[0].lower()
        assert re.search(rf"^{re.escape(name)}==", lock, re.M), name
        assert re.search(rf"^\| *`?{re.escape(name)}`? *\| *[^|\s][^|]{{10,}}\|", contributing, re.M), name


def test_build_files_name_no_registry() -> None:
    """Makefile, scripts, image and pipeline take every mirror from the machine they run on."""
    files = [ROOT / "Makefile", ROOT / "Dockerfile", ROOT / ".ci" / "run", ROOT / "pyproject.toml"]
    for path in [*files, *sorted((ROOT / "scripts").iterdir())]:
        addresses = re.findall(r"\w+://[\w.-]+|--(?:extra-)?index-url|--find-links", path.read_text())
        assert set(addresses) <= {"http://127.0.0.1"}, path.name


def test_no_file_speaks_of_one_machine() -> None:
    """No file holds a path that exists on the machine of one developer only."""
    of_one_machine = re.compile(rb"(?<![\w.-])/(?:(?:home|Users)/\w|root/\.?\w|(?:work|farm)/)")
    found = {str(path.relative_to(ROOT)) for path in repository_files() if of_one_machine.search(path.read_bytes())}
    assert found == set()
