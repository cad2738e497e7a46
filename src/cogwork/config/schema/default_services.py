"""The services that every machine provides, even if its configuration does not list them."""

from __future__ import annotations

from typing import Final

from cogwork.graph.name import Api, ModelName, ResourceName

DEFAULT_MODEL: Final = ModelName.parse("builtin")
DEFAULT_SERVICES: Final = (ResourceName(Api.parse("rdk:service:motion"), "builtin"),)
"""A configured service with the same API and name replaces the default one."""
