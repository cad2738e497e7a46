"""The redactor, which remembers secrets across configurations."""

from __future__ import annotations

from cogwork.logs.redactor import MAX_SECRETS, Redactor, redact_value


def test_secrets_of_earlier_configurations_stay_secret() -> None:
    redactor = Redactor()
    redactor.add_secrets(["first-secret"])
    redactor.add_secrets(["second-secret"])
    assert redactor.redact("first-secret, second-secret") == "***, ***"


def test_oldest_secrets_are_forgotten_over_the_limit() -> None:
    redactor = Redactor()
    for number in range(3):
        redactor.add_secrets(f"secret-{number}-{each:04}" for each in range(MAX_SECRETS // 2))
    assert redactor.redact("secret-2-0000 secret-1-0000 secret-0-0000") == "*** *** secret-0-0000"


def test_redact_value_masks_nested_texts() -> None:
    redactor = Redactor()
    redactor.add_secrets(['planted"secret'])
    value = {'planted"secret': ['planted"secret', 1, None, {"a": ('planted"secret', True)}]}
    assert redact_value(value, redactor.redact) == {"***": ["***", 1, None, {"a": ["***", True]}]}
