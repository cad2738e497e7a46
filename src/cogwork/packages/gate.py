"""Prevents resources from being built before their packages are ready."""

from __future__ import annotations

from collections.abc import Mapping

from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Unavailable
from cogwork.graph.spec import Spec
from cogwork.packages.manager import PackageManager


class PackageGate:
    """A provider that reports resources with missing packages as unavailable. It must be the first
    provider."""

    def __init__(self, packages: PackageManager) -> None:
        self._packages = packages
        self.waiting: Mapping[ResourceName, frozenset[str]] = {}
        """The missing packages, by waiting resource."""

    def offer(self, spec: Spec) -> Unavailable | None:
        names = self.waiting.get(spec.name)
        return self._packages.describe_missing(names) if names is not None else None
