"""The folder of the event journals.

Versions before 0.3 called it `story`. They find it by a link, so that a machine keeps its history
when an update is undone.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from cogwork.core.files.atomic import make_directory

_NAME: Final = "journal"
_FORMER_NAME: Final = "story"


def prepare_journal_folder(home: Path) -> Path:
    """Return the folder, with what an earlier version has recorded."""
    folder, former = home / _NAME, home / _FORMER_NAME
    with contextlib.suppress(OSError):  # the journal reports a folder that cannot be used
        if not folder.exists() and former.is_dir() and not former.is_symlink():
            former.rename(folder)
        make_directory(folder)
        if not former.exists():
            former.symlink_to(_NAME)
    return folder
