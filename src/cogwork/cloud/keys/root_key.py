"""The root key, which seals the keys of the cloud. It is stored outside of the database."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Final

from cogwork.cloud.keys.sealer import KEY_SIZE, Sealer, create_sealing_key
from cogwork.core.errors import CogworkError
from cogwork.core.files import atomic

ROOT_KEY_VARIABLE: Final = "COGWORK_CLOUD_ROOT_KEY"
"""The environment variable with the root key, which replaces the file."""


class NoRootKey(CogworkError):
    """The root key is missing, or is not a key."""


def read_root_key(file: Path, given: str) -> Sealer:
    """Return the sealer of the cloud's keys, from the given root key or from the file.

    Raise NoRootKey.
    """
    if given:
        return _parse(given, f"the environment variable {ROOT_KEY_VARIABLE}")
    try:
        return _parse(file.read_text(), str(file))
    except FileNotFoundError:
        raise NoRootKey(
            f"the root key {file} is missing; restore the file, or set {ROOT_KEY_VARIABLE}. "
            "If it is lost, machines and keys can still log in after: "
            "cogwork-cloud repair --new-root-key"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise NoRootKey(f"cannot read the root key {file}: {error}") from None


def create_root_key(file: Path, given: str) -> Sealer:
    """Return the sealer for the given root key, or for a new one, which is stored in the file."""
    if not given:
        atomic.write(file, base64.b64encode(create_sealing_key()) + b"\n", 0o600)
    return read_root_key(file, given)


def _parse(text: str, source: str) -> Sealer:
    try:
        return Sealer(base64.b64decode(text.strip(), validate=True))
    except (binascii.Error, ValueError):
        raise NoRootKey(
            f"{source} is not a root key, which has {KEY_SIZE} bytes in base64; restore it from "
            "its backup"
        ) from None
