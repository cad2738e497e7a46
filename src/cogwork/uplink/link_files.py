"""Names of the files that a machine keeps for its cloud."""

from __future__ import annotations

from typing import Final

ACCESS_FILE: Final = "access.json"
CERTIFICATE_FILE: Final = "certificate.pem"
LOG_DIRECTORY: Final = "log"
