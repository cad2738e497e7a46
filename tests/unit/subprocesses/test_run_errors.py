import logging

import pytest

from cogwork.core.errors import NotFound
from cogwork.subprocesses.executable_check import Misconfigured
from cogwork.subprocesses.run_errors import failing_on_errors


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (Misconfigured("no such file"), ("cannot be started: no such file", False)),
        (NotFound("no such user"), ("could not be started: no such user", True)),
        (OSError("too many files"), ("could not be started: too many files", True)),
        (ValueError("a bug"), ("could not be run: a bug", True)),
    ],
)
def test_errors_become_failures(
    error: Exception, failure: tuple[str, bool], caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[tuple[str, bool]] = []

    def fail(why: str, *, can_retry: bool = True) -> None:
        failures.append((why, can_retry))

    def run() -> None:
        with failing_on_errors("module scale", fail, logging.getLogger("test")):
            raise error

    run()
    assert failures == [failure]
    is_bug = isinstance(error, ValueError)
    assert caplog.messages == (["internal error while running module scale"] if is_bug else [])
