"""The desired state of one resource."""

from __future__ import annotations

from dataclasses import dataclass

from cogwork.graph.name import ModelName, Reference, ResourceName


@dataclass(frozen=True, slots=True)
class Spec:
    name: ResourceName
    model: ModelName
    settings: object = None
    """Settings for the constructor. The graph only compares them."""
    needs: tuple[Reference, ...] = ()
    """Required dependencies."""
    wants: tuple[Reference, ...] = ()
    """Optional dependencies, which the resource gets if they are ready."""
    fault: str | None = None
    """The reason why the resource cannot be built, from the diagnostics of its configuration."""
    settings_text: str = ""
    """Settings as text, to distinguish values that Python considers equal, such as 1 and true."""
    is_default: bool = False
    """Whether the machine provides the resource although nothing configures it."""
