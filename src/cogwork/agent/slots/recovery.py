"""Recovery after a crash or a power cut during an update: a usable version becomes current."""

from __future__ import annotations

import dataclasses

from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.state import ProductState
from cogwork.core.versions.product import Product


def recover(layout: Layout, product: Product, state: ProductState) -> ProductState:
    """Return a state that agrees with the links. Switch to another version if necessary.

    An update records the trial before it switches to the new version, and the failure before it
    switches back. So if the version on trial is not current, the trial never began. If the current
    version has failed, it must be replaced.
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
        state = dataclasses.replace(state, last_good=current)  # installed by hand
    return state


def _choose(installed: list[str], state: ProductState, fallback: str | None) -> str | None:
    """Return the version to run: preferably one that has worked, else one that has not failed."""
    preferred = [each for each in (state.last_good, fallback, state.previous) if each in installed]
    others = [each for each in reversed(installed) if each not in state.failed]
    return next(iter((*preferred, *others)), None)
