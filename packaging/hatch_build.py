"""Builds the control page into the wheel and the source archive, and man pages into the wheel.

An editable installation has neither: `make page` builds the page for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "src/cogwork/control/site"
WITHOUT_PAGE = "COGWORK_WITHOUT_PAGE"


class GeneratedFiles(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        if os.environ.get(WITHOUT_PAGE) != "1":
            self._run("scripts.control_page")
            # Git ignores it, so it would be left out.
            build_data["artifacts"].append(PAGE)
        if self.target_name == "wheel":
            self._add_man_pages(build_data["shared_data"])

    def _add_man_pages(self, shared_data: dict[str, str]) -> None:
        """Put the man pages where `man` looks for them."""
        # It is removed when Hatchling ends, which copies the files after this.
        self._directory = tempfile.TemporaryDirectory()
        self._run("scripts.man_pages", self._directory.name)
        for page in sorted(Path(self._directory.name).glob("*.1")):
            shared_data[str(page)] = f"share/man/man1/{page.name}"

    def _run(self, module: str, *arguments: str) -> None:
        """Run a script, which says itself why it fails."""
        # In a process of its own: what Hatchling imports stays as it is.
        done = subprocess.run(
            [sys.executable, "-B", "-m", module, *arguments],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(Path(self.root) / "src")},
            check=False,
        )
        if done.returncode != 0:
            self.app.abort(code=done.returncode)
