"""The command `cogwork-agent`, for machines on which no package has installed it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cogwork.agent.installation.other_services import is_ours
from cogwork.agent.installation.units import ORIGIN
from cogwork.core.files import atomic
from cogwork.core.versions.product import Product

COMMAND: Final = Path("/usr/local/bin/cogwork-agent")

_SCRIPT: Final = """\
#!/bin/sh
# {origin}, which replaces it when it is run again.
exec "$(readlink -f {root}/current-agent)/bin/python" -I -m {module} "$@"
"""

Report = Callable[[str], None]


def write_command(root: Path, report: Report) -> None:
    """Write the command, unless another program has installed a command with this name."""
    if not is_ours(COMMAND) and shutil.which(COMMAND.name) is not None:
        return
    script = _SCRIPT.format(origin=ORIGIN, root=root, module=Product.AGENT.module)
    atomic.write(COMMAND, script.encode(), 0o755)
    report(f"Wrote the command {COMMAND}.")


def remove_command(report: Report) -> None:
    if is_ours(COMMAND):
        COMMAND.unlink()
        report(f"Removed {COMMAND}.")
