from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cogwork.resource.model import Extra, MissingExtra


async def test_what_is_not_installed_says_how_to_install_it() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'cogwork\[onnx\]'"):
        await Extra("onnx", ("there_is_no_such_library",)).load()


async def test_variables_are_set_ahead_of_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "by whoever started us")
    monkeypatch.delenv("MISSING", raising=False)
    await Extra("x", ("json",), {"KEPT": "no", "MISSING": "set"}).load()
    assert (os.environ["KEPT"], os.environ.pop("MISSING")) == ("by whoever started us", "set")


def test_several_libraries_at_once() -> None:
    """They all import NumPy, which breaks when two threads begin that at the same time."""
    code = (
        "import asyncio\n"
        "from cogwork.resource.model import Extra\n"
        "async def main():\n"
        "    extras = [Extra('camera', (name,)) for name in ('cv2', 'onnxruntime', 'av')]\n"
        "    await asyncio.gather(*(extra.load() for extra in extras))\n"
        "asyncio.run(main())\n"
    )
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
