"""The secret of a part, which its cloud may replace.

The machine's file belongs to its owner, so a new secret is stored in a separate file. The new
secret is used as long as the machine's file contains the secret that it replaces.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

from cogwork.auth.verifier import credential_digest
from cogwork.config.schema.cloud import CloudConfig
from cogwork.core.error_text import error_text
from cogwork.core.files import atomic
from cogwork.uplink.link_files import SECRET_FILE

_log = logging.getLogger("rdk.networking")


def read_current_cloud(directory: Path, cloud: CloudConfig) -> CloudConfig:
    """Return the cloud settings of the machine's file, with the secret that is valid now."""
    file = directory / SECRET_FILE
    try:
        found = json.loads(file.read_bytes())
        if found["replaces"] == _digest(cloud.secret) and cloud.api_key is None:
            return cloud.model_copy(update={"secret": str(found["secret"])})
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.error(
            "the stored secret in %s cannot be used: %s; using the secret in the machine's "
            "configuration file",
            *(file, error_text(error)),
        )
    return cloud


def store_secret(directory: Path, replaced: str, secret: str) -> None:
    """Store the secret that replaces the secret in the machine's file. Raise OSError."""
    atomic.make_directory(directory)
    content = json.dumps({"replaces": _digest(replaced), "secret": secret})
    atomic.write(directory / SECRET_FILE, content.encode(), 0o600)


def _digest(secret: str) -> str:
    return credential_digest(secret).hex()
