"""Our version as clients of the public API see it.

Go's command line compares semantic versions with those of another server, and takes anything else
for new enough.
"""

from __future__ import annotations

from typing import Final

from cogwork import __version__

NAMED_VERSION: Final = f"cogwork-{__version__}"
