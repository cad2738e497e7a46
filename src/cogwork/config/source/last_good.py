"""The last configuration that was applied, stored on disk in case the file becomes unusable."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from cogwork.core.errors import CogworkError
from cogwork.core.files import atomic
from cogwork.core.os_error_text import os_reason

_MAGIC = "cogwork-last-good"
_FORMAT = 1


class DamagedCopy(CogworkError):
    """The stored configuration is damaged."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the last good configuration in {path} cannot be used: {reason}; "
            "delete it and fix the configuration file"
        )
        self.path = path


@dataclass(frozen=True, slots=True)
class LastGood:
    """A store for one configuration: a file, which may not exist yet."""

    path: Path

    def save(self, text: str) -> None:
        """Replace the stored text atomically: after a crash, the file has either the old text or
        the new."""
        body = _encode(text)
        atomic.write(self.path, _header(body) + body)

    def read(self) -> str | None:
        """Return the stored text, or None if there is none. Raise DamagedCopy."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DamagedCopy(self.path, f"reading failed ({os_reason(error)})") from error
        return self._decode(content)

    def _decode(self, content: bytes) -> str:
        header, newline, body = content.partition(b"\n")
        if header + newline != _header(body):
            raise DamagedCopy(self.path, "checksum mismatch")
        try:
            return body.decode()
        except UnicodeDecodeError:
            raise DamagedCopy(self.path, "not UTF-8 text") from None


def last_good_for(home: Path, config_file: Path) -> LastGood:
    """Return the store that belongs to a configuration file."""
    # Do not follow links: the store must stay the same when a link gets another target.
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
            f"the configuration cannot be stored: character {error.start} is "
            f"U+{ord(text[error.start]):04X}, half of a surrogate pair, which UTF-8 cannot encode"
        ) from error
