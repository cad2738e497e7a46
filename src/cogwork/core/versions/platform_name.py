"""The name of this computer's platform, as registries of packages and releases use it."""

from __future__ import annotations

import platform
from typing import Final

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}

_MACHINE: Final = platform.machine()

PLATFORM: Final = f"{platform.system().lower()}/{_ARCHITECTURES.get(_MACHINE, _MACHINE.lower())}"
"""The name of this computer's platform, such as `linux/amd64`."""
