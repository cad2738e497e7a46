"""The script that installs the releases of a cloud on a machine without Cogwork."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cogwork.cloud.updates.installer_script import (
    NothingToInstall,
    choose_releases,
    make_script,
)
from cogwork.cloud.updates.releases import Release
from cogwork.core.versions.platform_name import PLATFORM
from cogwork.core.versions.product import Product

CONTENT = b"an archive"
OTHER_PLATFORM = "linux/riscv64"


def release(product: Product, version: str, platform: str = PLATFORM) -> Release:
    digest = hashlib.sha256(CONTENT).hexdigest()
    return Release(product, version, platform, digest, len(CONTENT), f"{product}.tar", 0, "")


def run(script: str, folder: Path, *options: str) -> str:
    path = folder / "install.py"
    path.write_text(script)
    command = [sys.executable, *options, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    return done.stderr


def test_newest_releases_of_a_platform_are_installed() -> None:
    releases = [
        release(Product.SERVER, "1.10.0"),
        release(Product.SERVER, "1.9.0"),
        release(Product.AGENT, "1.2.0"),
        release(Product.SERVER, "2.0.0", OTHER_PLATFORM),
    ]
    (platform,) = chosen = choose_releases(releases)
    assert platform == PLATFORM
    assert {each.version for each in chosen[platform].values()} == {"1.10.0", "1.2.0"}
    with pytest.raises(NothingToInstall, match="both the server and the agent"):
        choose_releases(releases[3:])


def test_modules_beside_the_script_are_not_run(tmp_path: Path) -> None:
    for name in ("json", "__future__", "tarfile"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('it was run')")
    script = make_script({}, "http://x", "key")
    assert "run it with python3 -I" in run(script, tmp_path)
    assert "it was run" not in run(script, tmp_path, "-I")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gets so far")
def test_what_is_wrong_changes_nothing_and_is_explained(tmp_path: Path) -> None:
    chosen = {PLATFORM: {each: release(each, "1.0.0") for each in Product}}
    for product in Product:
        path = tmp_path / chosen[PLATFORM][product].path[1:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENT[::-1])
    told = run(make_script(chosen, tmp_path.as_uri(), "key"), tmp_path, "-I")
    assert "server.tar has changed since this script was made" in told
    told = run(make_script({OTHER_PLATFORM: chosen[PLATFORM]}, "http://x", "key"), tmp_path, "-I")
    assert told == (
        f"cogwork: not installed: there is no release for {PLATFORM}, only for {OTHER_PLATFORM}\n"
    )
    assert not list(Path("/var/tmp").glob("cogwork-install-*"))
