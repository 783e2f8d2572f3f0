"""The image as far as it can be tried without an engine of containers: its file, its sources, its wheel."""

import os
import re
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from specbudget import __version__

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=600, check=False
    )


def instructions(name: str) -> list[str]:
    """The arguments of each instruction of that name, in order."""
    return re.findall(rf"^{name} (.+)$", DOCKERFILE, re.M)


def test_the_dockerfile_has_no_findings() -> None:
    """hadolint finds nothing, not even of the lowest level."""
    linted = run(Path(sys.executable).with_name("hadolint"), "--failure-threshold", "style", "Dockerfile")
    assert (linted.returncode, linted.stdout) == (0, "")


def test_every_source_that_is_copied_exists_and_is_sent() -> None:
    """Each file or folder that COPY takes from the checkout is there and is let through by .dockerignore."""
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    sources = {
        source.rstrip("/")
        for arguments in instructions("COPY")
        if "--from=" not in arguments
        for source in shlex.split(arguments)[:-1]
    }
    assert sources == sent
    assert all((ROOT / source).exists() for source in sources)


def test_the_image_runs_as_a_number_and_without_a_shell() -> None:
    """The user is a number other than 0, and what is started is a list of words that no shell reads."""
    users = [re.fullmatch(r"(\d+):(\d+)", user) for user in instructions("USER")]
    assert users
    assert all(user is not None and int(user[1]) > 0 for user in users)
    assert instructions("ENTRYPOINT") == ['["specbudget"]']
    assert all(command.startswith("[") for command in instructions("CMD"))
    assert re.search(r"^HEALTHCHECK .*CMD \[", DOCKERFILE, re.M)
    assert instructions("EXPOSE") == ["9877"]


def test_the_label_names_the_version_of_the_project() -> None:
    """The image's version is the package's."""
    assert f'org.opencontainers.image.version="{__version__}"' in DOCKERFILE


@pytest.mark.slow
def test_the_wheel_installs_from_the_lock_and_runs_from_anywhere(tmp_path: Path) -> None:
    """As the image does it: a wheel, a clean environment from the runtime lock, the command outside the checkout."""
    built = run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "clean", with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(tmp_path / "clean" / "bin" / "python"), "install", "--quiet"]
    locked = run(*pip, "--require-hashes", "--requirement", ROOT / "requirements" / "runtime.txt")
    assert locked.returncode == 0, locked.stderr
    installed = run(*pip, "--no-deps", wheel)
    assert installed.returncode == 0, installed.stderr
    # It needs nothing beyond the lock.
    assert run(*pip[:-2], "check").returncode == 0
    said = run(tmp_path / "clean" / "bin" / "specbudget", "--version", cwd=Path("/"), PYTHONPATH="")
    assert (said.stdout, said.stderr, said.returncode) == (f"specbudget {__version__}\n", "", 0)
