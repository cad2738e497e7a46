from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cogwork.core.limits.held_amounts import HeldAmounts


def test_amounts_of_a_client_add_up_until_they_are_released() -> None:
    held = HeldAmounts()
    held.hold("a", 3)
    held.hold("a", 4)
    held.hold("b", 5)
    assert (held.of("a"), held.of("b"), held.of("c"), held.total) == (7, 5, 0, 12)
    held.release("a", 3)
    assert (held.of("a"), held.total) == (4, 9)


def test_client_that_holds_nothing_is_forgotten() -> None:
    held = HeldAmounts()
    held.hold("a", 3)
    held.release("a", 3)
    assert held.by_client == {}
    assert held.total == 0


def test_nothing_can_be_held_as_well() -> None:
    held = HeldAmounts()
    held.hold("a", 0)
    held.hold("a", 3)
    held.release("a", 3)
    held.release("a", 0)
    assert held.by_client == {}


def test_heaviest_client_is_found() -> None:
    held = HeldAmounts()
    for client, amount in (("a", 3), ("b", 5), ("c", 4)):
        held.hold(client, amount)
    assert held.find_heaviest() == "b"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 100))))
def test_total_is_the_sum_of_all_clients(amounts: list[tuple[str, int]]) -> None:
    held, counts = HeldAmounts(), Counter[str]()
    for number, (client, amount) in enumerate(amounts):
        held.hold(client, amount)
        counts[client] += amount
        if number % 2:
            held.release(client, amount)
            counts[client] -= amount
        assert held.by_client == +counts
        assert held.total == counts.total()
