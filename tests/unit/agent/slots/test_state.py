from __future__ import annotations

from pathlib import Path

import pytest

from cogwork.agent.errors import BadState
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.state import ProductState, SlotTrial, load_state, save_state
from cogwork.agent.slots.store import StateStore
from cogwork.core.versions.product import Product

SERVER = Product.SERVER


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    for version in ("1", "2", "3"):
        layout.slot(SERVER, version).mkdir(parents=True)
    layout.switch(SERVER, "2")
    return layout


def test_state_is_read_as_it_was_saved(tmp_path: Path) -> None:
    state = ProductState("2", "1").reject("3", "it hung", 5.0).begin_trial("4", "2", 6.0)
    saved = {SERVER: state.count_boot(), Product.AGENT: ProductState()}
    save_state(tmp_path / "state.json", saved)
    assert load_state(tmp_path / "state.json") == saved


@pytest.mark.parametrize("damage", [b"", b"{}", b"x\n{}", b"\xff\n"])
def test_damaged_state_is_noticed(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(damage)
    with pytest.raises(BadState):
        load_state(path)


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    save_state(path, {SERVER: ProductState("2", "1")})
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(BadState):
            load_state(path)


def test_agent_goes_on_without_its_state(layout: Layout) -> None:
    layout.state.write_bytes(b"damaged")
    assert StateStore(layout)[SERVER] == ProductState(last_good="2")
    assert load_state(layout.state)[SERVER].last_good == "2"


def test_first_version_counts_as_good(layout: Layout) -> None:
    assert StateStore(layout)[SERVER].last_good == "2"


def test_missing_link_is_repaired_with_the_last_good_version(layout: Layout) -> None:
    save_state(layout.state, {SERVER: ProductState("1", "3"), Product.AGENT: ProductState()})
    layout.current(SERVER).unlink()
    StateStore(layout)
    assert layout.current_version(SERVER) == "1"


def test_link_to_something_else_is_not_a_version(layout: Layout, tmp_path: Path) -> None:
    link = layout.current(SERVER)
    for target in ("/etc", "versions/../versions/server-2", "versions/server-9", "versions"):
        link.unlink()
        link.symlink_to(target)
        assert layout.current_version(SERVER) is None


def test_previous_is_the_one_that_was_good_before() -> None:
    state = ProductState("1").begin_trial("2", "1", 0).accept("2")
    assert (state.last_good, state.previous, state.used) == ("2", "1", frozenset("12"))
    assert state.accept("2") == state


def test_version_that_is_on_trial_is_not_returned_to() -> None:
    state = ProductState("1").begin_trial("2", "1", 0).begin_trial("3", "2", 1)
    assert state.trial == SlotTrial("3", "1", 1)
    assert ProductState().begin_trial("1", None, 0).begin_trial("2", "1", 1).trial == SlotTrial(
        "2", "1", 1
    )
