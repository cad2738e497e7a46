"""The last configuration that was applied, kept on disk for the day the file is unusable."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from cogwork.core import atomic
from cogwork.core.errors import CogworkError

_MAGIC = "cogwork-last-good"
_FORMAT = 1


class DamagedCopy(CogworkError):
    """The kept configuration is not what was written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the last good configuration kept in {path} cannot be used: {reason}; "
            "delete it, and fix the configuration file to start from"
        )
        self.path = path


@dataclass(frozen=True, slots=True)
class LastGood:
    """A place on disk that holds one configuration, or none yet."""

    path: Path

    def keep(self, text: str) -> None:
        """Replace what is kept; after a crash at any moment the old or the new is there."""
        body = _encode(text)
        atomic.write(self.path, _header(body) + body)

    def read(self) -> str | None:
        """What was kept last, or None if nothing was; raises DamagedCopy if it was altered."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DamagedCopy(self.path, f"reading it failed ({error.strerror})") from error
        return self._decode(content)

    def _decode(self, content: bytes) -> str:
        header, newline, body = content.partition(b"\n")
        if header + newline != _header(body):
            raise DamagedCopy(self.path, "its content does not match its checksum")
        return body.decode()


def last_good_for(home: Path, config_file: Path) -> LastGood:
    """The place that belongs to one configuration file."""
    # Links are not followed: the path a person starts with stays the same when a link is moved.
    absolute = os.path.normpath(config_file.absolute())
    digest = hashlib.sha256(os.fsencode(absolute)).hexdigest()[:8]
    return LastGood(home / "last-good" / f"{config_file.stem}-{digest}.json")


def _header(body: bytes) -> bytes:
    digest = hashlib.sha256(body).hexdigest()
    return f"{_MAGIC} {_FORMAT} {len(body)} {digest}\n".encode("ascii")


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the configuration cannot be kept: character {error.start} is "
            f"U+{ord(text[error.start]):04X}, half of a surrogate pair, which UTF-8 cannot hold"
        ) from error
