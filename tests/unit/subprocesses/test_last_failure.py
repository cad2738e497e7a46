from cogwork.core.backoff import RetryPolicy
from cogwork.subprocesses.last_failure import LastFailure

RETRY = RetryPolicy(first=1.0, maximum=4.0, jitter=0.0)


def make_failure() -> LastFailure:
    return LastFailure(RETRY, lambda text: text.replace("hunter2", "***"))


def test_failure_says_when_the_program_is_started_again() -> None:
    failure = make_failure()
    failure.record("exited with code 1")
    assert failure.sentence == "exited with code 1; restarting in 1.0s"
    failure.record("exited with code 1")
    assert failure.sentence == "exited with code 1; restarting in 2.0s"
    assert failure.details == {"reason": "exited with code 1", "failures": 2, "retry_after": 2.0}


def test_program_may_not_be_started_again() -> None:
    failure = make_failure()
    failure.record("cannot be started: no such file", can_retry=False)
    assert failure.text == "cannot be started: no such file"
    assert failure.retry_delay is None
    assert failure.details["retry_after"] is None


def test_last_lines_are_shown_if_the_reason_does_not_quote_all_of_them() -> None:
    failure = make_failure()
    failure.record("exited (last line: b)", ("b",), can_retry=False)
    assert failure.text == "exited (last line: b)"
    failure.record("exited (last line: b)", ("a", "b"), can_retry=False)
    assert failure.text == "exited (last line: b)\na\nb"


def test_secrets_are_redacted() -> None:
    failure = make_failure()
    failure.record("refused hunter2", ("password hunter2", "bye"), can_retry=False)
    assert failure.text == "refused ***\npassword ***\nbye"


def test_count_begins_anew_after_a_long_run() -> None:
    failure = make_failure()
    failure.record("exited")
    failure.count_run(29.9)
    assert failure.count == 1
    failure.count_run(30.0)
    assert failure.count == 0
    failure.record("exited")
    assert failure.retry_delay == 1.0
