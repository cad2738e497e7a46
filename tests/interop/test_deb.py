"""The Debian package: its contents, and its life on a computer with a real dpkg and systemd.

The packed program is this environment's server, which builds in no time. A soak has the real one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.startup import executable_path
from tests.support.booted_systemd import BootedSystem, boot_systemd, needs_systemd
from tests.support.paths import REPOSITORY

from cogwork import __version__

PACKAGING = REPOSITORY / "packaging"
SERVICE = "cogwork-server.service"
ENTRY = (
    "import sys; from runpy import run_module; "
    "module = sys.argv.pop(2) if sys.argv[1:2] == ['-m'] else ''; "
    "sys.argv[1:2] = [] if module else sys.argv[1:2]; "
    "run_module(module or 'cogwork.server.main', run_name='__main__', alter_sys=True)"
)
"""Does what `packaging/entry.py` does."""
MOMENT = "1700000000"

pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg is not installed")


@pytest.fixture(scope="module")
def deb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("deb"))


def build(directory: Path) -> Path:
    folder = directory / "cogwork-server"
    folder.mkdir()
    program = folder / "cogwork-server"
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-c", ENTRY])} "$@"\n')
    program.chmod(0o700)
    (folder / "library.so").write_bytes(b"\x7fELF GLIBC_2.4 GLIBC_2.28 GLIBC_2.9")
    run_script("pack.py", folder, directory / "bin")
    (executable,) = (directory / "bin").glob("*/cogwork-server")
    run_script("deb.py", executable, directory, "--compression=gzip")
    (package,) = directory.glob("*.deb")
    return package


def run_script(name: str, *arguments: str | Path) -> None:
    subprocess.run(
        [sys.executable, PACKAGING / name, *arguments],
        env={**os.environ, "SOURCE_DATE_EPOCH": MOMENT},
        check=True,
        capture_output=True,
        timeout=120,
    )


def query(deb: Path, option: str, *fields: str) -> str:
    command = ["dpkg-deb", option, str(deb), *fields]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_control_file_needs_no_python(deb: Path) -> None:
    assert deb.name.startswith(f"cogwork_{__version__}_")
    fields = ("Package", "Version", "Depends", "Recommends")
    assert query(deb, "--field", *fields).splitlines() == [
        "Package: cogwork",
        f"Version: {__version__}",
        "Depends: libc6 (>= 2.28), init-system-helpers (>= 1.54~)",
        # Only for releases that the agent installs.
        "Recommends: python3 (>= 3.11)",
    ]
    assert int(query(deb, "--field", "Installed-Size")) > 100


def test_files_are_where_debian_has_them(deb: Path) -> None:
    listing = [line.split(None, 5) for line in query(deb, "--contents").splitlines()]
    files = {line[5].partition(" -> ")[0]: line for line in listing if line[0][0] != "d"}
    assert all(line[1] == "root/root" for line in listing)
    assert {line[0] for line in listing if line[0][0] != "l"} <= {
        "drwxr-xr-x",
        "-rwxr-xr-x",
        "-rw-r--r--",
    }
    own = {name for name in files if "/doc/cogwork/licenses/" not in name}
    pages = {name for name in own if name.startswith("./usr/share/man/man1/")}
    assert {
        "./usr/share/man/man1/cogwork.1.gz",
        "./usr/share/man/man1/cogwork-agent.1.gz",
        "./usr/share/man/man1/cogwork-cloud.1.gz",
        "./usr/share/man/man1/cogwork-server.1.gz",
    } <= pages
    assert own - pages == {
        "./usr/bin/cogwork",
        "./usr/bin/cogwork-agent",
        "./usr/bin/cogwork-cloud",
        "./usr/bin/cogwork-server",
        "./usr/lib/cogwork/cogwork-server",
        "./usr/lib/cogwork/library.so",
        f"./usr/lib/systemd/system/{SERVICE}",
        "./usr/share/bash-completion/completions/cogwork",
        "./usr/share/bash-completion/completions/cogwork-agent",
        "./usr/share/bash-completion/completions/cogwork-cloud",
        "./usr/share/bash-completion/completions/cogwork-server",
        "./usr/share/cogwork/cogwork.json",
        "./usr/share/doc/cogwork/changelog.gz",
        "./usr/share/doc/cogwork/copyright",
        "./usr/share/fish/vendor_completions.d/cogwork.fish",
        "./usr/share/fish/vendor_completions.d/cogwork-agent.fish",
        "./usr/share/fish/vendor_completions.d/cogwork-cloud.fish",
        "./usr/share/fish/vendor_completions.d/cogwork-server.fish",
        "./usr/share/zsh/vendor-completions/_cogwork",
    }
    assert "./usr/share/doc/cogwork/licenses/grpcio/LICENSE" in files


def test_same_files_give_the_same_package(deb: Path, tmp_path: Path) -> None:
    again = build(tmp_path)
    assert digest(again) == digest(deb)


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.2.3", "1.2.3"), ("1.2.3rc1", "1.2.3~rc1"), ("1.2.3.dev4", "1.2.3~dev4")],
)
def test_pre_release_sorts_before_its_release(version: str, expected: str) -> None:
    code = f"import deb; print(deb.debian_version({version!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGING, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == expected
    if version != expected:
        subprocess.run(["dpkg", "--compare-versions", expected, "lt", "1.2.3"], check=True)


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootedSystem]:
    with boot_systemd(tmp_path_factory.mktemp("system")) as booted:
        yield booted


@needs_systemd
class TestInstalled:
    def test_install_serve_remove_purge(self, system: BootedSystem, deb: Path) -> None:
        check_life_of_package(system, deb)

    def test_service_that_was_disabled_stays_disabled(
        self, system: BootedSystem, deb: Path
    ) -> None:
        install(system, deb)
        system.run("systemctl", "disable", "--now", SERVICE)
        install(system, deb)
        assert system.show(SERVICE, "UnitFileState") == "disabled"
        run_dpkg(system, "--purge", "cogwork")

    def test_existing_configuration_is_kept(self, system: BootedSystem, deb: Path) -> None:
        config = system.root / "etc/cogwork.json"
        config.write_text('{"components": []}')
        install(system, deb)
        assert config.read_text() == '{"components": []}'
        run_dpkg(system, "--purge", "cogwork")
        assert not config.exists()

    def test_executable_does_not_install_itself_beside_it(
        self, system: BootedSystem, deb: Path
    ) -> None:
        install(system, deb)
        done = system.run("cogwork-server", "--aix-install", check=False)
        assert done.returncode == 1
        run_dpkg(system, "--purge", "cogwork")


@pytest.mark.soak
@pytest.mark.timeout(1800)
@needs_systemd
def test_real_package_runs_where_there_is_no_python(tmp_path: Path) -> None:
    subprocess.run(["make", "deb"], cwd=REPOSITORY, check=True, capture_output=True, timeout=1500)
    assert executable_path().exists()
    (package,) = (REPOSITORY / "dist").glob(f"cogwork_{__version__}_*.deb")
    with boot_systemd(tmp_path) as system:
        python = [shutil.which("python3", path="/usr/bin"), sys.prefix, sys.base_prefix]
        # In the overlay only.
        system.run("rm", "-rf", *(each for each in python if each))
        check_life_of_package(system, package)


def check_life_of_package(system: BootedSystem, deb: Path) -> None:
    system.run("rm", "-rf", "/root/.cogwork", "/usr/sbin/policy-rc.d")
    before = list_files(system)
    install(system, deb)
    assert system.run("cogwork-server", "-version").stdout == f"cogwork-server {__version__}\n"
    assert system.run("cogwork", "--version").stdout == f"cogwork {__version__}\n"
    assert system.show(SERVICE, "ActiveState") == "active"
    assert system.show(SERVICE, "UnitFileState") == "enabled"
    assert (system.root / "etc/cogwork.json").stat().st_mode & 0o777 == 0o600
    status = system.run("curl", "-s", "--max-time", "30", "http://localhost:8080/status.json")
    assert json.loads(status.stdout)["state"] in ("initializing", "running")
    assert "cogwork" in system.run("cogwork-cloud", "--help").stdout
    assert system.run("cogwork-agent", "--version").stdout == f"cogwork-agent {__version__}\n"
    first = system.show(SERVICE, "MainPID")
    install(system, deb)
    assert system.show(SERVICE, "ActiveState") == "active"
    assert system.show(SERVICE, "MainPID") != first
    run_dpkg(system, "--remove", "cogwork")
    assert system.show(SERVICE, "ActiveState") == "inactive"
    assert (system.root / "etc/cogwork.json").exists()
    assert (system.root / "var/lib/cogwork").exists()
    run_dpkg(system, "--purge", "cogwork")
    assert list_files(system) == before


def install(system: BootedSystem, deb: Path) -> None:
    # An image for containers forbids packages to start services.
    system.run("rm", "-f", "/usr/sbin/policy-rc.d")
    there = system.root / "var/tmp/cogwork.deb"
    shutil.copyfile(deb, there)
    try:
        run_dpkg(system, "--force-unsafe-io", "--install", "/var/tmp/cogwork.deb")
    finally:
        there.unlink()


def run_dpkg(system: BootedSystem, *arguments: str) -> None:
    # The triggers of others, such as the index of man pages, take longer than all the rest.
    system.run("dpkg", "--no-triggers", *arguments, within=300)


def list_files(system: BootedSystem) -> list[str]:
    """Return all files and links but those in which dpkg and systemd keep their records."""
    directories = ("/etc", "/usr", "/var/lib")
    found = system.run("find", *directories, "-xdev", "!", "-type", "d").stdout.splitlines()
    records = ("/var/lib/dpkg/", "/var/lib/systemd/")
    return sorted(path for path in found if not path.startswith(records))
