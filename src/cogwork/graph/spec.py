"""What somebody wants: one resource of the desired configuration."""

from __future__ import annotations

from dataclasses import dataclass

from cogwork.graph.name import ModelName, Reference, ResourceName


@dataclass(frozen=True, slots=True)
class Spec:
    name: ResourceName
    model: ModelName
    settings: object = None
    """What the constructor reads. The graph only compares it."""
    needs: tuple[Reference, ...] = ()
    """Dependencies without which it cannot run."""
    wants: tuple[Reference, ...] = ()
    """Dependencies it is given when they are there."""
    fault: str | None = None
    """Why it cannot be built at all, in the words of the diagnostics."""
    written: str = ""
    """The settings as text, for what Python takes for equal and a person does not: 1 and true."""
