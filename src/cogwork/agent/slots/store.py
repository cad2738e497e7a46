"""The state of the agent, in memory and on disk."""

from __future__ import annotations

import logging
import time

from cogwork.agent.errors import BadState
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.recovery import recover
from cogwork.agent.slots.state import ProductState, load_state, save_state
from cogwork.core.versions.product import Product

_log = logging.getLogger("agent.state")


class StateStore:
    """The state of each product's versions. An assignment returns after the change is on disk."""

    def __init__(self, layout: Layout) -> None:
        """Load the state, and repair it after an interrupted update."""
        self._layout = layout
        try:
            loaded = load_state(layout.state)
        except BadState as error:
            _log.error("%s; the agent continues with the current versions", error)
            layout.state.replace(layout.state.with_name(f"state.damaged-{int(time.time())}.json"))
            loaded = load_state(layout.state)
        self._state = {product: recover(layout, product, loaded[product]) for product in Product}
        if self._state != loaded:
            save_state(layout.state, self._state)

    def __getitem__(self, product: Product) -> ProductState:
        return self._state[product]

    def __setitem__(self, product: Product, state: ProductState) -> None:
        changed = {**self._state, product: state}
        save_state(self._layout.state, changed)
        self._state = changed
