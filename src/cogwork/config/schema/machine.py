"""The sections of the configuration file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.agent import AgentConfig
from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.schema.fields import (
    ApiField,
    Duration,
    LevelField,
    LongNameField,
    ModelField,
    PatternField,
    ResourceNameField,
    Section,
    UnsetIfZero,
    fault,
)
from cogwork.config.schema.frame import FrameConfig
from cogwork.config.schema.module import AppStatus, ModuleConfig
from cogwork.config.schema.network import AuthConfig, NetworkConfig
from cogwork.config.schema.process import ProcessConfig
from cogwork.config.schema.schedule import parse_schedule
from cogwork.core.errors import InvalidName
from cogwork.graph.name import BUILTIN_FAMILY, BUILTIN_NAMESPACE, ModelName, ResourceName

ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar")

RawAttributes = dict[str, JsonValue]


def _check_sensor_name(text: str) -> str:
    try:
        name = ResourceName.parse(text)
    except InvalidName:
        name = None
    if name is None or (name.api.kind, name.api.subtype) != ("component", "sensor"):
        raise fault(
            codes.BAD_VALUE,
            'expected the full name of a sensor, such as "rdk:component:sensor/safe"',
        )
    return text


def _check_schedule(text: str) -> str:
    try:
        parse_schedule(text)
    except ValueError as error:
        raise fault(codes.BAD_VALUE, str(error)) from None
    return text


def _check_package_url(text: str) -> str:
    if re.match(r"https?://[^/]*@", text):
        raise fault(
            codes.BAD_VALUE,
            "the address contains a login, which is not supported; remove the login",
        )
    if text and not re.match(r"https?://[^/]|/|~", text):
        raise fault(
            codes.BAD_VALUE,
            f'"{text[:200]}" is neither an http:// or https:// address nor an absolute path',
        )
    return text


def _check_sha256(text: str) -> str:
    if text and not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise fault(codes.BAD_VALUE, "expected 64 hexadecimal digits, as sha256sum prints them")
    return text


class LogConfiguration(Section):
    """The log level of one resource."""

    level: LevelField
    """The lowest level that is logged: `debug`, `info`, `warn` or `error`."""


class AssociatedConfig(Section):
    """Settings of a service for one resource, such as data capture."""

    type: str
    """The service, such as `data_manager`."""
    attributes: RawAttributes = {}
    """The settings for that service."""


class ResourceConfig(Section):
    """A component or a service."""

    kind: ClassVar[str]

    name: ResourceNameField
    """The name of the resource, unique among the resources of the same API."""
    api: ApiField
    """The API, such as `rdk:component:sensor`. Older files use `namespace` and `type` instead."""
    model: ModelField
    """The model: a single word for a built-in model, or `namespace:family:name`."""
    attributes: RawAttributes = {}
    """The settings of the model. Each model has its own attributes."""
    depends_on: list[str] = []
    """Names or full names of further dependencies, in addition to those in `attributes`."""
    frame: FrameConfig | None = None
    """The position and orientation. Unknown by default."""
    log_configuration: LogConfiguration | None = None
    """The log level of the resource. It overrides the rules of `log`."""
    service_configs: list[AssociatedConfig] = []
    """Settings of services for this resource, such as which data to capture."""
    disabled: bool = False
    """Whether the resource is disabled. Resources that depend on it wait."""

    @property
    def full_name(self) -> ResourceName:
        return ResourceName(self.api, self.name)

    @model_validator(mode="before")
    @classmethod
    def _accept_legacy_fields(cls, data: Any) -> Any:
        return cls.convert_legacy_fields(data) if isinstance(data, dict) else data

    @classmethod
    def convert_legacy_fields(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Convert `namespace` and `type`, which older files use, to `api`."""
        data = {key: value for key, value in data.items() if value is not None}
        namespace = data.pop("namespace", BUILTIN_NAMESPACE)
        subtype = data.pop("type", None)
        if "api" not in data and subtype is not None:
            written = isinstance(namespace, str) and isinstance(subtype, str)
            data["api"] = f"{namespace}:{cls.kind}:{subtype}" if written else subtype
        return data

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.api.kind != self.kind:
            known = self.api.kind in ("component", "service")
            advice = (
                f'move it to "{self.api.kind}s"'
                if known
                else f'the second part must be "{self.kind}"'
            )
            raise fault(codes.BAD_API, f"{self.api} is not a {self.kind}; {advice}")
        return self


class ComponentConfig(ResourceConfig):
    """A hardware component, such as a motor or a camera."""

    kind = "component"


class ServiceConfig(ResourceConfig):
    """A capability built on components, such as vision or motion planning."""

    kind = "service"

    name: ResourceNameField = "builtin"
    """The name of the service, unique among the services of the same API."""
    api: ApiField
    """The API, such as `rdk:service:vision`. Older files use `namespace` and `type` instead."""
    model: ModelField = ModelName(BUILTIN_NAMESPACE, BUILTIN_FAMILY, "builtin")
    """The model: a single word for a built-in model, or `namespace:family:name`."""


class Credentials(Section):
    """The credentials for a login."""

    type: str
    """The type of the credentials, such as `api-key`."""
    payload: str
    """The secret itself."""


class RemoteAuth(Section):
    """The login to another machine."""

    credentials: Credentials | None = None
    """The credentials. Without credentials, there is no login."""
    entity: str = ""
    """The identity to log in as, such as the ID of an API key."""


class RemoteConfig(Section):
    """Another machine whose resources become part of this one."""

    name: ResourceNameField
    """The name of the remote on this machine."""
    address: Annotated[str, Field(min_length=1)]
    """The address of the remote, such as `line2.local:8080`. With `managed_by`, the name of the
    remote in that cloud, such as `line2-main.abc123.fleet.example.com`."""
    frame: FrameConfig | None = None
    """The pose of the remote's world frame on this machine. By default, the frames of the remote
    are not available here."""
    auth: RemoteAuth | None = None
    """The login to the remote. No login by default."""
    managed_by: str = ""
    """The address of the cloud that manages the remote, such as `fleet.example.com`. If given, this
    machine logs in to that cloud and calls the remote over WebRTC, through the signaling server of
    the cloud. This reaches machines behind routers. By default, this machine connects to `address`
    over gRPC."""
    insecure: bool = False
    """Whether to connect without TLS: to the remote, or to the cloud that manages it."""
    connection_check_interval: Duration = 0.5
    """Interval between checks of the connection and of the resources of the remote."""
    reconnect_interval: Duration = 1.0
    """Time to wait between two attempts to reconnect."""
    service_configs: list[AssociatedConfig] = []
    """Settings of services for the resources of the remote, such as which data to capture."""
    secret: str = ""
    """The location secret of the remote, as a short form of `auth`."""
    prefix: str = ""
    """A prefix for the names of the remote's resources, to avoid conflicts."""
    disabled: bool = False
    """Whether the remote is disabled: this machine does not connect to it."""


class PackageConfig(Section):
    """A versioned directory of files: a model, a module or a map."""

    name: LongNameField
    """The name of the package in placeholders: `${packages.TYPE.NAME}` is its directory."""
    package: str = ""
    """The ID of the package, as `organization/name`. Required unless there is a `url`."""
    version: Annotated[str, UnsetIfZero()] = "latest"
    """The version to use."""
    type: Annotated[Literal["ml_model", "module", "slam_map", "archive"], UnsetIfZero()] = (
        "ml_model"
    )
    """The type of the package."""
    url: Annotated[str, AfterValidator(_check_package_url)] = ""
    """The address of the package if the cloud does not provide it: the `http://` or `https://`
    address or the absolute path of an archive (`.tar.gz`), or the absolute path of a folder, which
    is used as it is. If the archive changes, change `version` or `sha256`, too. Clouds do not pass
    this setting on, so write it in the machine's own file."""
    sha256: Annotated[str, AfterValidator(_check_sha256)] = ""
    """The SHA-256 hash of the archive, in hexadecimal. An archive with another hash is refused."""
    status: AppStatus | None = None
    """The status of the package in the cloud. Filled in by the cloud."""
    disabled: bool = False
    """Whether the package is disabled: it is not downloaded, and its placeholders are not
    filled."""

    @property
    def folder(self) -> Path | None:
        """The folder that is used as the package; None if `url` names an archive."""
        if not self.url.startswith(("/", "~")) or self.archive is not None:
            return None
        return Path(self.url).expanduser()

    @property
    def archive(self) -> Path | None:
        """The path of the archive, if it is a file on this computer."""
        is_file = self.url.startswith(("/", "~")) and self.url.lower().endswith(ARCHIVE_SUFFIXES)
        return Path(self.url).expanduser() if is_file else None

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if not self.package and not self.url:
            raise fault(codes.MISSING_FIELD, '"package" or "url" is missing; one is required')
        if self.sha256 and self.folder is not None:
            raise fault(
                codes.BAD_VALUE, '"sha256" is the hash of an archive, but "url" names a folder'
            )
        return self


class LogRule(Section):
    """A log level for all loggers whose names match."""

    pattern: PatternField
    """A name of a logger, resource or module, with `*` as a wildcard, or a regular expression."""
    level: LevelField
    """The lowest level that is logged. If several rules match, the last one applies."""


class MaintenanceConfig(Section):
    """The sensor that decides when an update may interrupt the machine."""

    sensor_name: Annotated[str, AfterValidator(_check_sensor_name)]
    """The full name of the sensor, such as `rdk:component:sensor/safe`."""
    maintenance_allowed_key: Annotated[str, Field(min_length=1)]
    """The key of the reading. Only the value `true` allows an interruption."""


class JobConfig(Section):
    """A method of a resource that is called on a schedule."""

    name: LongNameField
    """The name of the job."""
    schedule: Annotated[str, Field(min_length=1), AfterValidator(_check_schedule)]
    """A duration such as `10m`, a cron expression of five or six fields, or `continuous`."""
    resource: Annotated[str, Field(min_length=1)]
    """The name or full name of the resource."""
    method: Annotated[str, Field(min_length=1)]
    """The gRPC method, such as `GetReadings` or `DoCommand`."""
    command: dict[str, JsonValue] | None = None
    """The argument of `DoCommand`. Other methods are called without arguments."""
    log_configuration: LogConfiguration | None = None
    """The log level of the job."""
    disabled: bool = False
    """Whether the job is disabled: it does not run."""


class TracingConfig(Section):
    """Tracing of calls."""

    enabled: bool = False
    """Whether to trace calls. It has no effect unless at least one output is configured."""
    disk: bool = False
    """Whether to write the traces to disk."""
    console: bool = False
    """Whether to print the traces."""
    otlpendpoint: str = ""
    """The OTLP endpoint to send traces to, such as `localhost:4317`. None by default."""


class MachineConfig(Section):
    """The configuration of a machine."""

    schema_location: Annotated[str, Field(alias="$schema")] = ""
    """The JSON Schema of this file, for your editor. The machine does not read it."""
    cloud: CloudConfig | None = None
    """The connection to the cloud. Without it, the machine only uses this file."""
    modules: list[ModuleConfig] = []
    """Programs that provide additional models."""
    remotes: list[RemoteConfig] = []
    """Other machines whose resources become part of this one."""
    components: list[ComponentConfig] = []
    """The hardware of the machine, such as motors and cameras."""
    services: list[ServiceConfig] = []
    """Capabilities built on the components, such as vision or motion planning."""
    processes: list[ProcessConfig] = []
    """Programs that run alongside the machine."""
    packages: list[PackageConfig] = []
    """Versioned files that the machine needs, such as machine learning models."""
    network: Annotated[NetworkConfig, Field(default_factory=NetworkConfig.model_construct)]
    """The addresses and connections of the server."""
    auth: Annotated[AuthConfig, Field(default_factory=AuthConfig.model_construct)]
    """Client authentication."""
    log: list[LogRule] = []
    """Log levels by logger name. The last match applies."""
    maintenance: MaintenanceConfig | None = None
    """The sensor that decides when an update may interrupt the machine. Without it, updates may
    always interrupt it."""
    agent: AgentConfig | None = None
    """The agent, which installs updates."""
    jobs: list[JobConfig] = []
    """Methods to call on a schedule."""
    tracing: Annotated[TracingConfig, Field(default_factory=TracingConfig.model_construct)]
    """Tracing of calls."""
    debug: bool = False
    """Whether to log everything, at debug level."""
    enable_web_profile: bool = False
    """Whether to serve a profiler over HTTP."""
    disable_log_deduplication: bool = False
    """Whether to log every message, no matter how often it repeats."""
    revision: str = ""
    """A label that clients see. Defaults to a hash of the file."""
