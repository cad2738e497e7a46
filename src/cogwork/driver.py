"""The public interface for authors of drivers and plug-ins; everything else may change.

Import this module before the SDK. Importing the SDK replaces `sys.excepthook` and adds handlers to
its loggers; this module undoes both.
"""

from __future__ import annotations

from cogwork.resource.sdk import clean_import as _sdk  # isort: skip - before anything imports the SDK

from cogwork.config.schema.fields import (
    Attributes,
    Dependency,
    Duration,
    ExistingFile,
    OptionalDependency,
)
from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import (
    CogworkError,
    Interrupted,
    InvalidRequest,
    NotFound,
    Unsupported,
)
from cogwork.core.workers import Workers
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.emergency_stop import EmergencyStop
from cogwork.resource.frame import Frame, FrameProducer, Image
from cogwork.resource.health import ReportsFault
from cogwork.resource.model import Model, find_dependency, logger_of
from cogwork.resource.sdk.adapter import model_from_sdk_class

SDK_VERSION = _sdk.VERSION
"""The installed version of the SDK."""

Needs = Dependency  # the name before version 0.3
Wants = OptionalDependency  # the name before version 0.3

__all__ = [
    "SDK_VERSION",
    "Api",
    "Attributes",
    "Clock",
    "CogworkError",
    "Dependencies",
    "Dependency",
    "Duration",
    "EmergencyStop",
    "ExistingFile",
    "Frame",
    "FrameProducer",
    "Image",
    "Interrupted",
    "InvalidRequest",
    "Model",
    "ModelName",
    "NotFound",
    "OptionalDependency",
    "ReportsFault",
    "ResourceName",
    "SystemClock",
    "Unsupported",
    "Workers",
    "find_dependency",
    "logger_of",
    "model_from_sdk_class",
]
