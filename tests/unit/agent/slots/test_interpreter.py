"""The Python of a release, among real interpreters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cogwork.agent.errors import BadRelease
from cogwork.agent.slots.interpreter import PYTHON, find_python


def test_agent_in_a_python_environment_uses_its_own(tmp_path: Path) -> None:
    assert find_python(PYTHON, directories=str(tmp_path)) == Path(sys.executable)


@pytest.mark.parametrize("name", [f"python{PYTHON}", "python3"])
def test_packed_agent_uses_the_one_of_the_system(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to(sys.executable)
    assert find_python(PYTHON, is_packed=True, directories=str(tmp_path)) == tmp_path / name


def test_other_version_is_named(tmp_path: Path) -> None:
    (tmp_path / "python3").symlink_to(sys.executable)
    expected = f"the release is for Python 3.99, but this computer has {PYTHON}; use a release for"
    with pytest.raises(BadRelease, match=expected):
        find_python("3.99", directories=str(tmp_path))


def test_without_a_python_it_says_what_to_install(tmp_path: Path) -> None:
    # Debian has a smaller Python, which makes no virtual environments.
    small = tmp_path / "python3"
    small.write_text("#!/bin/sh\necho 'No module named venv' >&2\nexit 1\n")
    small.chmod(0o755)
    with pytest.raises(BadRelease, match=r"install it with: sudo apt install python3$"):
        find_python(PYTHON, is_packed=True, directories=str(tmp_path))
