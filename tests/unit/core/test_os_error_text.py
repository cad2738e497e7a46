from __future__ import annotations

import errno
import os
import shutil

import pytest

from cogwork.core.os_error_text import os_reason, write_reason


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EACCES, "Permission denied", "/a"), "Permission denied"),
        (OSError("3 requested and 0 written"), "3 requested and 0 written"),
        (shutil.SameFileError("a and b are the same file"), "a and b are the same file"),
        (OSError(), "OSError"),
        (ValueError("not UTF-8"), "not UTF-8"),
    ],
)
def test_reason_is_a_text_for_every_error(error: Exception, reason: str) -> None:
    assert (os_reason(error), write_reason(error)) == (reason, reason)


def test_error_with_a_number_alone_has_the_text_of_the_system() -> None:
    error = OSError()
    error.errno = errno.EIO
    assert os_reason(error) == os.strerror(errno.EIO)


def test_full_disk_says_what_to_do() -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert write_reason(error) == "No space left on device: free some disk space"
