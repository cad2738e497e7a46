"""The files that a machine stores for its connection to a cloud."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from cogwork.config.schema.cloud import CloudConfig

ACCESS_FILE: Final = "access.json"
CERTIFICATE_FILE: Final = "certificate.pem"
SECRET_FILE: Final = "secret.json"  # noqa: S105 - a name
LOG_DIRECTORY: Final = "log"


def link_directory(home: Path, cloud: CloudConfig) -> Path:
    """Return the directory of one part of one cloud. Each part of each cloud has its own directory,
    so that no other cloud gets the data."""
    name = hashlib.sha256(f"{cloud.app_address}\n{cloud.id}".encode()).hexdigest()[:16]
    return home / "joined" / name
