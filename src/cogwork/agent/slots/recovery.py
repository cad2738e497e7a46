"""Makes a version current that may run, after a crash or a power cut at any step of an update."""

from __future__ import annotations

import dataclasses

from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.state import ProductState
from cogwork.core.versions.product import Product


def recover(layout: Layout, product: Product, state: ProductState) -> ProductState:
    """Return the state that agrees with the links, which may be changed.

    An update saves its trial before it switches, and its failure before it switches back. So a
    trial of another version than the current one never began, and a current version that failed is
    to be replaced.
    """
    current = layout.current_version(product)
    trial = state.trial
    if trial is not None and trial.version != current:
        state = dataclasses.replace(state, trial=None)
    if current is None or current in state.failed:
        fallback = trial.fallback if trial is not None else None
        wanted = _choose(layout.installed(product), state, fallback)
        if wanted is not None and wanted != current:
            layout.switch(product, wanted)
    elif state.last_good is None and state.trial is None:
        state = dataclasses.replace(state, last_good=current)  # someone installed it by hand
    return state


def _choose(installed: list[str], state: ProductState, fallback: str | None) -> str | None:
    """Return the version to run: one that was good, else any that did not fail."""
    preferred = [each for each in (state.last_good, fallback, state.previous) if each in installed]
    others = [each for each in reversed(installed) if each not in state.failed]
    return next(iter((*preferred, *others)), None)
