"""The whole configuration file, section by section."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from cogwork.config import codes
from cogwork.config.cloud import CloudConfig
from cogwork.config.fields import (
    ApiField,
    Duration,
    LevelField,
    LongNameField,
    ModelField,
    PatternField,
    ResourceNameField,
    Section,
    fault,
)
from cogwork.config.frame import Frame
from cogwork.config.module import AppStatus, ModuleConfig
from cogwork.config.network import AuthConfig, NetworkConfig
from cogwork.config.schedule import read_schedule
from cogwork.core.errors import InvalidName
from cogwork.graph.name import BUILTIN_FAMILY, BUILTIN_NAMESPACE, ModelName, ResourceName

Attributes = dict[str, JsonValue]


def _full_name_of_a_sensor(text: str) -> str:
    try:
        name = ResourceName.parse(text)
    except InvalidName:
        name = None
    if name is None or (name.api.kind, name.api.subtype) != ("component", "sensor"):
        raise fault(
            codes.BAD_VALUE,
            'it is the full name of a sensor, such as "rdk:component:sensor/safe"',
        )
    return text


def _readable_schedule(text: str) -> str:
    try:
        read_schedule(text)
    except ValueError as error:
        raise fault(codes.BAD_VALUE, str(error)) from None
    return text


class LogConfiguration(Section):
    """The log level of one resource."""

    level: LevelField
    """The lowest level that is logged: `debug`, `info`, `warn` or `error`."""


class AssociatedConfig(Section):
    """What a service reads beside a resource, such as data capture."""

    type: str
    """The service that reads it, such as `data_manager`."""
    attributes: Attributes = {}
    """What that service reads."""


class ResourceConfig(Section):
    """One component or service."""

    kind: ClassVar[str]

    name: ResourceNameField
    """What it is called. No other resource of the same API has that name."""
    api: ApiField
    """What it can do, such as `rdk:component:sensor`. Older files say `namespace` and `type`."""
    model: ModelField
    """How it does it: a bare word for a built-in model, or `namespace:family:name`."""
    attributes: Attributes = {}
    """What the model reads. Each model has attributes of its own."""
    depends_on: list[str] = []
    """Resources it needs, by name or full name, beside those that its `attributes` name."""
    frame: Frame | None = None
    """Where it is. By default that is not known."""
    log_configuration: LogConfiguration | None = None
    """A log level of its own, which counts before the rules of `log`."""
    service_configs: list[AssociatedConfig] = []
    """What services read about it, such as what data to capture."""

    @property
    def full_name(self) -> ResourceName:
        return ResourceName(self.api, self.name)

    @model_validator(mode="before")
    @classmethod
    def _from_older_files(cls, data: Any) -> Any:
        return cls.spelled_out(data) if isinstance(data, dict) else data

    @classmethod
    def spelled_out(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Older files say namespace and type instead of api."""
        data = {key: value for key, value in data.items() if value is not None}
        namespace = data.pop("namespace", BUILTIN_NAMESPACE)
        subtype = data.pop("type", None)
        if "api" not in data and subtype is not None:
            written = isinstance(namespace, str) and isinstance(subtype, str)
            data["api"] = f"{namespace}:{cls.kind}:{subtype}" if written else subtype
        return data

    @model_validator(mode="after")
    def _of_its_kind(self) -> Self:
        if self.api.kind != self.kind:
            known = self.api.kind in ("component", "service")
            advice = f"move it to {self.api.kind}s" if known else f"write {self.kind} in its middle"
            raise fault(codes.BAD_API, f"{self.api} is not a {self.kind}; {advice}")
        return self


class ComponentConfig(ResourceConfig):
    """A part of the machine, such as a motor or a camera."""

    kind = "component"


class ServiceConfig(ResourceConfig):
    """Something the machine does with its components, such as seeing or moving."""

    kind = "service"

    name: ResourceNameField = "builtin"
    """What it is called. No other service of the same API has that name."""
    api: ApiField
    """What it can do, such as `rdk:service:vision`. Older files say `namespace` and `type`."""
    model: ModelField = ModelName(BUILTIN_NAMESPACE, BUILTIN_FAMILY, "builtin")
    """How it does it: a bare word for a built-in model, or `namespace:family:name`."""


class Credentials(Section):
    """What to log in with."""

    type: str
    """What kind they are, such as `api-key`."""
    payload: str
    """The secret itself."""


class RemoteAuth(Section):
    """How to log in to another machine."""

    credentials: Credentials | None = None
    """What to log in with. By default there is no login."""
    entity: str = ""
    """Who logs in, such as the id of an API key."""


class RemoteConfig(Section):
    """Another machine whose resources are used as our own."""

    name: ResourceNameField
    """What it is called here."""
    address: Annotated[str, Field(min_length=1)]
    """Where it is reached, such as `line2.local:8080`."""
    frame: Frame | None = None
    """Where its world is in ours. Without it none of its frames is known here."""
    auth: RemoteAuth | None = None
    """How to log in there. By default there is no login."""
    managed_by: str = ""
    """Who looks after it, such as the address of its cloud."""
    insecure: bool = False
    """Whether to connect without TLS."""
    connection_check_interval: Duration = 10.0
    """How often to see whether the connection still works."""
    reconnect_interval: Duration = 1.0
    """How long to wait between two attempts to connect again."""
    service_configs: list[AssociatedConfig] = []
    """What services read about its resources, such as what data to capture."""
    secret: str = ""
    """The secret of its location, as a short form of `auth`."""
    prefix: str = ""
    """What to put before the names of its resources, to tell them from others."""


class ProcessConfig(Section):
    """A program that runs beside the machine."""

    id: LongNameField
    """What it is called."""
    name: Annotated[str, Field(min_length=1)]
    """The program to run."""
    args: list[str] = []
    """What to pass to the program."""
    cwd: str = ""
    """The directory to run it in. By default it is that of the server."""
    one_shot: bool = False
    """Whether it ends by itself, instead of being started again when it does."""
    username: str = ""
    """The user to run it as. By default it is that of the server."""
    env: dict[str, str] = {}
    """Variables to add to its environment."""
    log: bool = False
    """Whether to log what it prints."""
    stop_signal: str | int = "SIGTERM"
    """The signal that asks it to stop, by its name or its number."""
    stop_timeout: Duration = 10.0
    """How long it has to stop before it is killed."""


class PackageConfig(Section):
    """A versioned directory of files: a model, a module, a map."""

    name: LongNameField
    """What it is called in placeholders: `${packages.TYPE.NAME}` is its directory."""
    package: Annotated[str, Field(min_length=1)]
    """Which one it is, as `organization/name`."""
    version: str = "latest"
    """Which version to use."""
    type: Literal["ml_model", "module", "slam_map", "archive"] = "ml_model"
    """What the files are."""
    status: AppStatus | None = None
    """What the cloud found wrong with it. The cloud fills it."""


class LogRule(Section):
    """A level for every logger whose name matches."""

    pattern: PatternField
    """The name of a logger, with `*` for anything, or a regular expression."""
    level: LevelField
    """The lowest level that is logged. If several rules match, the last one counts."""


class MaintenanceConfig(Section):
    """Which sensor says when an update may interrupt the machine."""

    sensor_name: Annotated[str, AfterValidator(_full_name_of_a_sensor)]
    """The full name of the sensor, such as `rdk:component:sensor/safe`."""
    maintenance_allowed_key: Annotated[str, Field(min_length=1)]
    """Which of its readings to look at. Only `true` allows an interruption."""


class JobConfig(Section):
    """A method of a resource, called on a schedule."""

    name: LongNameField
    """What it is called."""
    schedule: Annotated[str, Field(min_length=1), AfterValidator(_readable_schedule)]
    """When: a duration such as `10m`, a cron line of five or six fields, or `continuous`."""
    resource: Annotated[str, Field(min_length=1)]
    """The name of the resource, or its full name."""
    method: Annotated[str, Field(min_length=1)]
    """The method, as gRPC spells it: `GetReadings`, or `DoCommand`."""
    command: dict[str, JsonValue] | None = None
    """What to pass to `DoCommand`. Other methods take nothing."""
    log_configuration: LogConfiguration | None = None
    """A log level of its own."""


class TracingConfig(Section):
    """Where time goes in calls, and where to write it."""

    enabled: bool = False
    """Whether to trace at all. It has no effect unless the traces go somewhere."""
    disk: bool = False
    """Whether to write the traces to the disk."""
    console: bool = False
    """Whether to print the traces."""
    otlpendpoint: str = ""
    """Where to send the traces by OTLP, such as `localhost:4317`. Empty is nowhere."""


class MachineConfig(Section):
    """One machine."""

    schema_location: Annotated[str, Field(alias="$schema")] = ""
    """The JSON Schema of this file, for your editor. The machine does not read it."""
    cloud: CloudConfig | None = None
    """How the machine finds its fleet. Without it, this file is all there is."""
    modules: list[ModuleConfig] = []
    """Programs that bring models of their own."""
    remotes: list[RemoteConfig] = []
    """Other machines whose resources are used as our own."""
    components: list[ComponentConfig] = []
    """The parts of the machine, such as motors and cameras."""
    services: list[ServiceConfig] = []
    """What the machine does with its components, such as seeing or moving."""
    processes: list[ProcessConfig] = []
    """Programs that run beside the machine."""
    packages: list[PackageConfig] = []
    """Files that it needs in a certain version, such as models for machine learning."""
    network: Annotated[NetworkConfig, Field(default_factory=NetworkConfig.model_construct)]
    """Where and how the machine is reached."""
    auth: Annotated[AuthConfig, Field(default_factory=AuthConfig.model_construct)]
    """Who may use the machine."""
    log: list[LogRule] = []
    """Log levels by the names of loggers, the last match counting."""
    maintenance: MaintenanceConfig | None = None
    """Which sensor says when an update may interrupt the machine. By default it always may."""
    jobs: list[JobConfig] = []
    """Methods to call on a schedule."""
    tracing: Annotated[TracingConfig, Field(default_factory=TracingConfig.model_construct)]
    """Where time goes in calls, and where to write it."""
    debug: bool = False
    """Whether to log everything, at debug level."""
    enable_web_profile: bool = False
    """Whether to serve a profiler over HTTP."""
    disable_log_deduplication: bool = False
    """Whether to log a message every time, however often it repeats."""
    revision: str = ""
    """A label that clients see. By default it is made from the text of the file."""
