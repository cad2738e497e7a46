"""The author of an edit, as histories show it."""

from __future__ import annotations

from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import exists


def describe_editor(tx: Transaction, key: str) -> pb.AuthenticatorInfo:
    """Describe the key that made an edit. The key may have been deleted."""
    is_deleted = not exists(tx, "SELECT 1 FROM api_key WHERE id = ?", key)
    return pb.AuthenticatorInfo(
        type=pb.AuthenticationType.AUTHENTICATION_TYPE_API_KEY,
        value=key,
        is_deactivated=is_deleted,
    )
