"""What does not fit into the message for a machine is left out, and nothing else."""

from __future__ import annotations

from typing import Any

from cogwork.cloud.machine.message_fit import fit_message

ARM: dict[str, Any] = {"name": "arm", "api": "rdk:component:arm", "model": "fake"}


def test_ordinary_configuration_fits() -> None:
    message, mistakes = fit_message({"components": [ARM], "debug": True})
    assert [each.name for each in message.components] == ["arm"]
    assert (message.debug, mistakes) == (True, [])


def test_only_the_item_that_does_not_fit_is_left_out() -> None:
    wrong = {**ARM, "name": "leg", "attributes": "none"}
    message, mistakes = fit_message({"components": [ARM, wrong], "debug": True})
    assert [each.name for each in message.components] == ["arm"]
    assert message.debug
    (mistake,) = mistakes
    assert mistake.startswith('"leg" in components is left out: ')


def test_section_that_does_not_fit_is_left_out() -> None:
    message, mistakes = fit_message({"components": [ARM], "network": 7})
    assert [each.name for each in message.components] == ["arm"]
    (mistake,) = mistakes
    assert mistake.startswith("network is left out: ")


def test_items_without_a_name_are_named_by_their_section() -> None:
    _, mistakes = fit_message({"components": [7, None, ARM]})
    assert len(mistakes) == 2
    assert all(each.startswith("components is left out: ") for each in mistakes)
