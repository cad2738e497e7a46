"""The folder of the event journals.

Versions before 0.3 called the folder `story`. A link with that name lets them find the journals
after a downgrade.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from cogwork.core.files.atomic import make_directory

_NAME: Final = "journal"
_FORMER_NAME: Final = "story"


def prepare_journal_folder(home: Path) -> Path:
    """Return the folder of the journals. Move the journals of earlier versions there."""
    folder, former = home / _NAME, home / _FORMER_NAME
    with contextlib.suppress(OSError):  # the journal reports a folder that cannot be used
        if not folder.exists() and former.is_dir():
            former.rename(folder)
        make_directory(folder)
        if not former.exists():
            former.symlink_to(_NAME)
    return folder
