"""Installs the agent and the server on a machine without Cogwork.

`cogwork-cloud release installer` builds a script from this file, with the releases of a cloud. It
runs as root with Python 3.9 or later and imports only the standard library.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_SYSTEMD = Path("/run/systemd/system")
_SERVICE = "cogwork-install"
_LOG = Path("/var/log/cogwork-install.log")
_TIMEOUT = 60.0
"""Timeout in seconds without data from the cloud."""
_STEP_TIMEOUT = 900.0
"""Timeout in seconds to create an environment, long enough for a slow board."""
_CHUNK = 1 << 16
_POLL = 0.2


class CannotInstall(Exception):
    """The installation failed, and nothing was changed. The message has the reason."""


def main(releases: dict[str, Any], key: str, options: list[str]) -> int:
    """Install the releases for this machine, and return the exit code. `releases` has the URL,
    SHA-256 and size of each product by platform."""
    try:
        _require_root()
        return _install(_choose(releases), key, options)
    except (CannotInstall, OSError, subprocess.SubprocessError) as error:
        print(f"cogwork: not installed: {error}", file=sys.stderr)
        return 1


def _require_root() -> None:
    if os.geteuid() != 0:
        raise CannotInstall("the installer needs the rights of root; run it with sudo")


def _choose(releases: dict[str, Any]) -> dict[str, Any]:
    machine = platform.machine()
    name = f"{platform.system().lower()}/{_ARCHITECTURES.get(machine, machine.lower())}"
    if name not in releases:
        raise CannotInstall(f"there is no release for {name}, only for {', '.join(releases)}")
    found: dict[str, Any] = releases[name]
    return found


def _install(releases: dict[str, Any], key: str, options: list[str]) -> int:
    # Use /var/tmp, because /tmp may be in memory and too small for the archives.
    work = Path(tempfile.mkdtemp(prefix="cogwork-install-", dir="/var/tmp"))
    try:
        (work / "key.pem").write_text(key)
        archives = [_download(each, work) for each in releases.values()]
        python = _make_environment(work, work / releases["agent"]["filename"])
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    command = [python, "-I", "-m", "cogwork.agent.main", "install", "--key", str(work / "key.pem")]
    for each in archives:
        command += ["--release", str(each)]
    command += options
    if _SYSTEMD.is_dir():
        return _run_as_service(command, work)
    try:
        return subprocess.call(command)  # noqa: S603 - the agent of the release
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _download(release: dict[str, Any], work: Path) -> Path:
    path = Path(work, release["filename"])
    digest, size = hashlib.sha256(), 0
    url = release["url"]
    reply = urllib.request.urlopen(url, timeout=_TIMEOUT)  # noqa: S310 - a URL of the cloud
    with reply, path.open("wb") as file:
        while chunk := reply.read(_CHUNK):
            size += len(chunk)
            if size > release["size"]:
                break
            digest.update(chunk)
            file.write(chunk)
    if size != release["size"] or digest.hexdigest() != release["sha256"]:
        raise CannotInstall(f"{url} has changed since this script was made; make a new script")
    print(f"Downloaded {path.name}, {size:,} bytes.", flush=True)
    return path


def _make_environment(work: Path, agent: Path) -> str:
    """Install the agent in a temporary environment, and return its Python."""
    release = work / "release"
    with tarfile.open(agent) as archive:
        archive.extractall(release)  # noqa: S202 - its digest is the one that was expected
    version = json.loads((release / "manifest.json").read_bytes())["python"]
    _run([_find_python(version), "-I", "-m", "venv", "--without-pip", str(work / "python")])
    python = str(work / "python" / "bin" / "python")
    (pip,) = (release / "wheels").glob("pip-*.whl")
    _run(
        [
            *(python, "-I", str(pip / "pip"), "install", "--quiet", "--no-index", "--no-deps"),
            *("--no-cache-dir", "--disable-pip-version-check", "--require-hashes"),
            *("--find-links", str(release / "wheels")),
            *("--requirement", str(release / "requirements.txt")),
        ]
    )
    return python


def _find_python(version: str) -> str:
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return sys.executable
    found = shutil.which(f"python{version}", path="/usr/bin:/usr/local/bin")
    if found is None:
        raise CannotInstall(f"the release needs Python {version}; install python{version}")
    return found


def _run(command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603 - programs of the interpreter and of the release
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_STEP_TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise CannotInstall(f"{command[0]} failed: {done.stdout.decode(errors='replace')}")


def _run_as_service(command: list[str], work: Path) -> int:
    """Run the command as a service, because the server that it replaces may own this shell.

    The output goes to a file. Print it until the command ends.
    """
    properties = (
        f"ExecStopPost=/bin/rm -rf {work}",
        f"StandardOutput=append:{_LOG}",
        f"StandardError=append:{_LOG}",
    )
    options = ["--quiet", "--wait", "--collect", f"--unit={_SERVICE}"]
    options += [f"--property={each}" for each in properties]
    options.append(f"--setenv=PATH={os.environ['PATH']}")
    print(f"The output of the installation is in {_LOG}, too.", flush=True)
    with _LOG.open("a+") as log:
        service = subprocess.Popen(  # noqa: S603 - the agent of the release
            ["/usr/bin/systemd-run", *options, *command], stdin=subprocess.DEVNULL
        )
        while service.poll() is None:
            print(log.read(), end="", flush=True)
            time.sleep(_POLL)
        print(log.read(), end="", flush=True)
    is_running = ["/usr/bin/systemctl", "is-active", "--quiet", _SERVICE]
    if subprocess.call(is_running):  # noqa: S603 - a program of the system
        shutil.rmtree(work, ignore_errors=True)  # in case the service did not start
    return service.returncode
