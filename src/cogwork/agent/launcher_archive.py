"""The archive with the launcher and its imports, which any Python can run."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Final

import cogwork
from cogwork.core.files import atomic

MODULES: Final = (
    "agent/errors",
    "agent/launcher",
    "agent/release/manifest",
    "agent/slots/layout",
    "agent/slots/recovery",
    "agent/slots/state",
    "agent/slots/store",
    "core/errors",
    "core/files/atomic",
    "core/files/complete_write",
    "core/os_error_text",
    "core/versions/product",
    "core/versions/version_order",
    "systemd/notify_socket",
)
_MAIN: Final = """\
import sys
from cogwork.agent.launcher import main
sys.exit(main(sys.argv[1:]))
"""
_TIME: Final = (1980, 1, 1, 0, 0, 0)


def write_launcher(path: Path) -> None:
    atomic.write(path, make_launcher(Path(cogwork.__file__).parent), 0o644)


def make_launcher(sources: Path) -> bytes:
    """Return the archive, given the directory of the `cogwork` package."""
    packages = {parent for each in MODULES for parent in Path(each).parents}
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", _TIME), _MAIN)
        for package in sorted(packages):
            name = str(Path("cogwork", package, "__init__.py"))
            archive.writestr(zipfile.ZipInfo(name, _TIME), "")
        for module in MODULES:
            info = zipfile.ZipInfo(f"cogwork/{module}.py", _TIME)
            archive.writestr(info, (sources / f"{module}.py").read_bytes())
    return data.getvalue()
