from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cogwork.resource.model import Extra, MissingExtra


async def test_missing_extra_has_install_advice() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'cogwork\[onnx\]'"):
        await Extra("onnx", ("there_is_no_such_library",)).load()


async def test_executable_names_an_environment_to_run_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It cannot load installed libraries."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(MissingExtra) as missing:
        await Extra("torch", ("there_is_no_such_library",)).load()
    message = str(missing.value)
    assert "this executable does not contain it" in message
    assert "cogwork-env/bin/pip install 'cogwork[torch]'`" in message
    assert "run `cogwork-env/bin/cogwork-server` instead" in message


async def test_missing_environment_variables_are_set_before_the_import(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEPT", "by whoever started us")
    monkeypatch.delenv("MISSING", raising=False)
    await Extra("x", ("json",), {"KEPT": "no", "MISSING": "set"}).load()
    assert (os.environ["KEPT"], os.environ.pop("MISSING")) == ("by whoever started us", "set")


async def test_objects_of_a_library_are_frozen_for_the_garbage_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "heavy_library.py").write_text("HELD = [[]]")
    monkeypatch.syspath_prepend(tmp_path)
    await Extra("camera", ("heavy_library",)).load()
    held = sys.modules.pop("heavy_library").HELD
    assert not any(each is held for each in gc.get_objects())


def test_extras_can_be_loaded_concurrently() -> None:
    """They all import NumPy, which breaks when two threads import it concurrently."""
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
