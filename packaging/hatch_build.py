"""Puts the man pages into the wheel, where `man` looks for them; warns of a missing page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPages(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        if not (Path(self.root) / "src/cogwork/control/site/index.html").exists():
            self.app.display_warning("the control page is not built; run `make page` to include it")
        directory = Path(self.root) / "build" / "man"
        # In a process of its own: what Hatchling imports stays as it is.
        subprocess.run(
            [sys.executable, "-m", "scripts.man_pages", str(directory)],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(Path(self.root) / "src")},
            check=True,
        )
        for page in sorted(directory.glob("*.1")):
            build_data["shared_data"][str(page)] = f"share/man/man1/{page.name}"
