"""Records of the cloud as an earlier version wrote them, to test that they are upgraded."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from cogwork.cloud.storage.schema import MIGRATIONS

FIRST_RELEASE = 5
"""Number of migrations in version 0.1."""


@contextlib.contextmanager
def create_old_records(path: Path, version: int = FIRST_RELEASE) -> Iterator[sqlite3.Connection]:
    """Create a database after the first `version` migrations, and open it."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for script in MIGRATIONS[:version]:
            assert isinstance(script, str), "a migration that is a function cannot be repeated here"
            connection.executescript(script)
        connection.execute(f"PRAGMA user_version = {version}")
        yield connection
        connection.commit()
