"""Build a Debian package from the one-file executable.

    python packaging/deb.py bin/linux-amd64/cogwork-server dist

The files of the executable are unpacked in the package: it needs no second copy under /var, and
every user can run it. The same input gives the same package, byte by byte.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path, PurePosixPath

from cogwork import __version__
from cogwork.server.install.service_installer import EMPTY_CONFIG
from cogwork.server.install.service_paths import SERVICE
from cogwork.server.install.unit_file import format_unit

ROOT = Path(__file__).parents[1]
TEMPLATES = Path(__file__).with_name("debian")
COMPLETIONS = ROOT / "src/cogwork/cli/completions"
PROGRAM = PurePosixPath("/usr/lib/cogwork/cogwork-server")
COMMANDS = {
    "cogwork": "cogwork.cli.main",
    "cogwork-agent": "cogwork.agent.main",
    "cogwork-cloud": "cogwork.cloud.main",
}
"""The commands that the executable has as modules."""
SCRIPTS = ("postinst", "prerm", "postrm")
PROGRAMS_COMPLETED_BY_COGWORK = ("cogwork-server", "cogwork-agent", "cogwork-cloud")
LINKS = {
    "usr/bin/cogwork-server": "../lib/cogwork/cogwork-server",
    **{
        f"usr/share/bash-completion/completions/{each}": "cogwork"
        for each in PROGRAMS_COMPLETED_BY_COGWORK
    },
    **{
        f"usr/share/fish/vendor_completions.d/{each}.fish": "cogwork.fish"
        for each in PROGRAMS_COMPLETED_BY_COGWORK
    },
}
BUILD_TOOLS = frozenset(("altgraph", "pip", "pyinstaller", "pyinstaller-hooks-contrib"))
_LICENSE = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|AUTHORS)", re.IGNORECASE)
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")
_OLDEST_GLIBC = (2, 17)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("executable", type=Path)
    parser.add_argument("into", type=Path)
    parser.add_argument(
        "--compression", default="gzip", help="as dpkg-deb -Z takes it; xz takes minutes"
    )
    options = parser.parse_args()
    if shutil.which("dpkg-deb") is None:
        sys.exit("dpkg-deb is missing; build the package on Debian or Ubuntu")
    options.into.mkdir(parents=True, exist_ok=True)
    target = options.into / f"cogwork_{debian_version(__version__)}_{architecture()}.deb"
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory, "tree")
        stage(options.executable, tree)
        build(tree, target, options.compression)
    print(f"{target} {target.stat().st_size / 1e6:.1f} MB")
    return 0


def debian_version(version: str) -> str:
    """Return the version as dpkg sorts it: a pre-release comes before its release."""
    return re.sub(r"\.?(a|b|rc|dev)(\d+)", r"~\1\2", version)


def architecture() -> str:
    command = ["dpkg", "--print-architecture"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def stage(executable: Path, tree: Path) -> None:
    """Write the files of the package as they will be installed, and its control files."""
    unpack(executable, tree / "usr/lib/cogwork")
    glibc = required_glibc(tree)
    for name, module in COMMANDS.items():
        write(tree / "usr/bin" / name, f'#!/bin/sh\nexec {PROGRAM} -m {module} "$@"\n', 0o755)
    unit = format_unit(PurePosixPath("/usr/bin/cogwork-server"), "Part of the package cogwork.")
    write(tree / "usr/lib/systemd/system" / SERVICE, unit)
    write(tree / "usr/share/cogwork/cogwork.json", EMPTY_CONFIG)
    stage_documentation(tree / "usr/share")
    for path, target in LINKS.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).symlink_to(target)
    set_modes(tree)
    stage_control(tree, glibc)
    set_times(tree)


def unpack(executable: Path, into: Path) -> None:
    data = executable.read_bytes()
    first = re.search(rb"tail -n \+(\d+) ", data)
    if first is None:
        sys.exit(f"{executable} is not what `make server` builds")
    script_lines = int(first[1]) - 1
    offset = 0
    for _ in range(script_lines):
        offset = data.index(b"\n", offset) + 1
    with tarfile.open(fileobj=io.BytesIO(data[offset:]), mode="r:gz") as archive:
        archive.extractall(into, filter="tar")


def required_glibc(tree: Path) -> str:
    """Return the newest glibc that a program or library refers to."""
    found = {_OLDEST_GLIBC}
    for path in tree.rglob("*"):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if data.startswith(b"\x7fELF"):
                found |= {(int(major), int(minor)) for major, minor in _GLIBC.findall(data)}
    return ".".join(map(str, max(found)))


def stage_documentation(share: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "scripts.man_pages", directory]
        subprocess.run(command, cwd=ROOT, check=True)
        for page in Path(directory).glob("*.1"):
            write_compressed(share / "man/man1" / f"{page.name}.gz", page.read_bytes())
    documents = share / "doc/cogwork"
    write_compressed(documents / "changelog.gz", (ROOT / "CHANGELOG.md").read_bytes())
    write(documents / "copyright", (TEMPLATES / "copyright").read_text(encoding="utf-8"))
    for name, text in licenses():
        write(documents / "licenses" / name, text)
    for shell, path in {
        "bash": "bash-completion/completions/cogwork",
        "zsh": "zsh/vendor-completions/_cogwork",
        "fish": "fish/vendor_completions.d/cogwork.fish",
    }.items():
        write(share / path, (COMPLETIONS / f"cogwork.{shell}").read_text(encoding="utf-8"))


def licenses() -> Iterator[tuple[str, str]]:
    """Yield the license files of the packages in this environment, from which it was built."""
    for each in distributions():
        name = each.metadata["Name"]
        if name.lower() in BUILD_TOOLS:
            continue
        for file in each.files or ():
            if ".dist-info/" in str(file) and _LICENSE.match(file.name):
                inside = str(file).partition(".dist-info/")[2].removeprefix("licenses/")
                text = Path(str(file.locate())).read_text(encoding="utf-8", errors="replace")
                yield f"{name}/{inside}", text
    python = Path(sys.base_prefix, f"lib/python{sys.version_info[0]}.{sys.version_info[1]}")
    if (python / "LICENSE.txt").exists():
        yield "Python/LICENSE.txt", (python / "LICENSE.txt").read_text(encoding="utf-8")


def stage_control(tree: Path, glibc: str) -> None:
    text = (TEMPLATES / "control").read_text(encoding="utf-8")
    for name, value in {
        "VERSION": debian_version(__version__),
        "ARCHITECTURE": architecture(),
        "INSTALLED_SIZE": str(installed_kilobytes(tree)),
        "GLIBC": glibc,
    }.items():
        text = text.replace(f"@{name}@", value)
    write(tree / "DEBIAN/control", text)
    for script in SCRIPTS:
        text = (TEMPLATES / script).read_text(encoding="utf-8")
        write(tree / "DEBIAN" / script, text, 0o755)


def installed_kilobytes(tree: Path) -> int:
    files = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    return sum(-(-path.stat().st_size // 1024) for path in files)


def set_modes(tree: Path) -> None:
    """Let everyone read the files: the executable unpacks its own for one user."""
    for path in tree.rglob("*"):
        if not path.is_symlink():
            is_program = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if is_program else 0o644)


def set_times(tree: Path) -> None:
    moment = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    for path in (tree, *tree.rglob("*")):
        os.utime(path, (moment, moment), follow_symlinks=False)


def build(tree: Path, target: Path, compression: str) -> None:
    tree.chmod(0o755)
    (tree / "DEBIAN").chmod(0o755)
    # The default level of gzip, 9, takes twice as long and saves little.
    options = ("--root-owner-group", f"-Z{compression}", "-z6")
    moment = {"SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "0")}
    fresh = target.with_suffix(".new")
    command = ["dpkg-deb", *options, "--build", str(tree), str(fresh)]
    subprocess.run(command, check=True, env={**os.environ, **moment}, stdout=subprocess.DEVNULL)
    fresh.replace(target)


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def write_compressed(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0))


if __name__ == "__main__":
    sys.exit(main())
