"""The progress of updates, in the log and in the file that `cogwork-agent status` shows."""

from __future__ import annotations

import dataclasses
import json
import logging
from pathlib import Path

from cogwork.core.clock import Clock
from cogwork.core.files import atomic
from cogwork.core.versions.product import Product
from cogwork.core.versions.update_progress import MachineProgress, ProductProgress

_log = logging.getLogger("agent.updates")


class UpdateProgress:
    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._products: dict[Product, ProductProgress] = {}
        self._source_fault: str | None = None

    def note_source(self, fault: str | None) -> None:
        """Record whether the source of updates can be reached. `fault` is None if it can."""
        if fault != self._source_fault:
            if fault is not None:
                _log.warning("cannot look for updates: %s", fault)
            else:
                _log.info("can look for updates again")
            self._source_fault = fault
            self._save()

    def note_current(self, product: Product, version: str) -> None:
        self._note(product, "current", version, "")

    def note_installing(self, product: Product, version: str, step: str) -> None:
        self._note(product, "installing", version, step)

    def note_waiting(self, product: Product, version: str, reason: str) -> float:
        """Record that an update waits. Return the time when it began to wait."""
        return self._note(product, "waiting", version, reason)

    def note_switching(self, product: Product, version: str) -> None:
        self._note(product, "switching", version, "it must run for a while before it is accepted")

    def note_failed(self, product: Product, version: str, reason: str) -> None:
        self._note(product, "failed", version, reason)

    def note_refused(self, product: Product, version: str, reason: str) -> None:
        self._note(product, "refused", version, reason)

    def _note(self, product: Product, phase: str, version: str, detail: str) -> float:
        before = self._products.get(product)
        is_same = before is not None and (before.phase, before.version) == (phase, version)
        since = before.since if before is not None and is_same else self._clock.time()
        now = ProductProgress(phase, version, detail, since)
        if now != before:
            level = logging.WARNING if phase in ("failed", "refused") else logging.INFO
            state = "has failed" if phase == "failed" else f"is {phase}"
            _log.log(level, "%s %s %s%s", product, version, state, f": {detail}" if detail else "")
            self._products[product] = now
            self._save()
        return since

    def _save(self) -> None:
        value = dataclasses.asdict(MachineProgress(self._products, self._source_fault))
        atomic.write(self._path, json.dumps(value, indent=1).encode() + b"\n", 0o644)
