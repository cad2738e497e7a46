"""The whole configuration file, section by section."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from cogwork.config import codes
from cogwork.config.fields import (
    ApiField,
    Duration,
    FileField,
    LevelField,
    LongNameField,
    ModelField,
    PatternField,
    ResourceNameField,
    Section,
    fault,
)
from cogwork.config.schedule import read_schedule
from cogwork.core.errors import InvalidName
from cogwork.graph.name import BUILTIN_FAMILY, BUILTIN_NAMESPACE, ModelName, ResourceName
from cogwork.spatial.orientation import read_orientation
from cogwork.spatial.pose import Pose, Quaternion

Attributes = dict[str, JsonValue]

_PORT = re.compile(r"[0-9]{1,5}\Z")


def _host_and_port(text: str) -> str:
    _, colon, port = text.rpartition(":")
    if text and not (colon and _PORT.match(port) and int(port) <= 65535):
        raise fault(codes.BAD_VALUE, 'an address is host:port, such as "localhost:8080"')
    return text


def _heartbeat(seconds: float) -> float:
    if not 0.03 <= seconds <= 60:
        raise fault(codes.BAD_VALUE, "the window lies between 30ms and 1m")
    return seconds


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


class Vector(Section):
    """A place in space."""

    x: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """Millimetres along the x axis."""
    y: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """Millimetres along the y axis."""
    z: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """Millimetres along the z axis."""


class Orientation(Section):
    """How something is turned. Without `type` and `value` it is not."""

    type: (
        Literal["ov_degrees", "ov_radians", "euler_angles", "axis_angles", "quaternion"] | None
    ) = None
    """How `value` is written. Only `ov_degrees` counts in degrees, the others in radians."""
    value: dict[str, JsonValue] | None = None
    """The rotation: `x`, `y`, `z`, `th`; or `roll`, `pitch`, `yaw`; or `w`, `x`, `y`, `z`."""

    @property
    def turned(self) -> Quaternion:
        return read_orientation(self.type or "", self.value)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_absent(cls, data: Any) -> Any:
        """Upstream writes an orientation that is none with an empty type."""
        if isinstance(data, dict) and data.get("type") == "":
            return {key: value for key, value in data.items() if key != "type"}
        return data

    @model_validator(mode="after")
    def _is_a_rotation(self) -> Self:
        try:
            _ = self.turned
        except ValueError as error:
            raise fault(codes.BAD_VALUE, str(error)) from None
        return self


class Frame(Section):
    """Where something is, in millimetres from its parent."""

    parent: str
    """What it is measured from: `world`, or the name of a component."""
    id: str | None = None
    """What the frame is called. By default it has the name of what it belongs to."""
    translation: Annotated[Vector, Field(default_factory=Vector.model_construct)]
    """Where it is, seen from its parent. By default it is at the same place."""
    orientation: Orientation | None = None
    """How it is turned against its parent. By default it is not."""
    geometry: dict[str, JsonValue] | None = None
    """The space it takes up, such as a box. By default none is known."""

    @property
    def pose(self) -> Pose:
        """Where it is and how it is turned, seen from its parent."""
        place = self.translation
        turned = self.orientation.turned if self.orientation else Quaternion.identity()
        return Pose((place.x, place.y, place.z), turned)

    @model_validator(mode="after")
    def _in_the_world(self) -> Self:
        if not self.parent:
            raise fault(codes.BAD_VALUE, 'the parent is empty; it is "world" or a component')
        if self.id == "world":
            raise fault(codes.BAD_VALUE, 'no frame but the world itself is called "world"')
        if self.id is not None and self.id == self.parent:
            raise fault(codes.BAD_VALUE, f'the frame "{self.id}" is its own parent')
        return self


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


class AppStatus(Section):
    """What the cloud found wrong with a module or a package."""

    error: str | None = None
    """What is wrong. By default nothing is."""


class ModuleLimits(Section):
    """What a module may use at most."""

    memory_mb: Annotated[float, Field(gt=0)] | None = None
    """Megabytes of memory."""
    cpu_cores: Annotated[float, Field(gt=0)] | None = None
    """How many cores of the processor, such as `0.5`, where the server has a control group."""
    open_files: Annotated[int, Field(gt=0)] | None = None
    """How many files and connections it may have open."""
    no_new_privileges: bool = False
    """Whether programs like `sudo` do nothing for it."""


class ModuleConfig(Section):
    """Other people's resources, in a process of their own."""

    name: LongNameField
    """What it is called. The name `parent` is taken."""
    executable_path: str = ""
    """The program to start. A local module needs it."""
    type: Literal["local", "registry"] = "local"
    """Where it comes from: a path on this computer, or the registry."""
    module_id: str = ""
    """Its name in the registry. A registry module needs it."""
    log_level: LevelField | None = None
    """The lowest level that it logs. By default it is that of the machine."""
    env: dict[str, str] = {}
    """Variables to add to its environment."""
    tcp_mode: bool = False
    """Whether to talk to it by TCP instead of a Unix socket."""
    first_run_timeout: Duration = 3600.0
    """How long the first run of a new version may take to set itself up."""
    limits: ModuleLimits | None = None
    """What it may use at most. By default as much as there is."""
    status: AppStatus | None = None
    """What the cloud found wrong with it. The cloud fills it."""

    @model_validator(mode="after")
    def _can_start(self) -> Self:
        if self.name == "parent":
            raise fault(codes.BAD_NAME, 'the name "parent" is kept for the server\'s own socket')
        if self.type == "local" and not self.executable_path:
            raise fault(
                codes.MISSING_FIELD, '"executable_path" is missing: a local module needs it'
            )
        if self.type == "registry" and not self.module_id:
            raise fault(codes.MISSING_FIELD, '"module_id" is missing: a registry module needs it')
        return self


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


class Sessions(Section):
    """What happens when a client that moves something falls silent."""

    heartbeat_window: Annotated[Duration, AfterValidator(_heartbeat)] = 2.0
    """How long it may be silent before the motion is stopped, from `30ms` to `1m`."""


class TunnelEndpoint(Section):
    """A port of this computer that clients may reach through the machine."""

    port: Annotated[int, Field(ge=1, le=65535)]
    """Its number, from 1 to 65535."""
    connection_timeout: Duration = 10.0
    """How long it may take to connect to it."""


class NetworkConfig(Section):
    """Where and how the machine is reached."""

    fqdn: str = ""
    """The name that clients know the machine by."""
    bind_address: Annotated[str, AfterValidator(_host_and_port)] = ""
    """Where to listen. Empty is `localhost:8080`; without a host it is every interface."""
    grpc_address: Annotated[str, AfterValidator(_host_and_port)] = ""
    """A second address for gRPC alone, which moves large messages faster. Empty is none."""
    tls_cert_file: FileField = ""
    """A PEM file with the certificate to serve with. It goes with `tls_key_file`."""
    tls_key_file: FileField = ""
    """A PEM file with the private key of `tls_cert_file`."""
    no_tls: bool = False
    """Whether to serve without TLS, even with a certificate."""
    sessions: Annotated[Sessions, Field(default_factory=Sessions.model_construct)]
    """What happens when a client that moves something falls silent."""
    traffic_tunnel_endpoints: list[TunnelEndpoint] = []
    """Ports of this computer that clients may reach through the machine."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if bool(self.tls_cert_file) != bool(self.tls_key_file):
            missing = "tls_key_file" if self.tls_cert_file else "tls_cert_file"
            raise fault(codes.HALF_SET, f'"{missing}" is missing: certificate and key go together')
        return self


class AuthHandler(Section):
    """A way to log in."""

    type: Literal["api-key"]
    """Which way it is: with an API key."""
    config: dict[str, JsonValue]
    """Each key under its id, and in `keys` the ids that may log in."""

    @model_validator(mode="after")
    def _has_keys(self) -> Self:
        keys = self.config.get("keys")
        if not isinstance(keys, list) or not keys:
            raise fault(
                codes.MISSING_FIELD, '"keys" is missing: the list of key ids that may log in'
            )
        for number, key_id in enumerate(keys, 1):
            if not isinstance(key_id, str) or not isinstance(self.config.get(key_id), str):
                # Not by its name: somebody may have listed the key itself.
                raise fault(codes.HALF_SET, f'number {number} of "keys" has no key beside it')
        return self


class ExternalAuth(Section):
    """Tokens that somebody else issues."""

    jwks: dict[str, JsonValue]
    """The public keys that prove a token, as a JSON Web Key Set."""


class AuthConfig(Section):
    """Who may use the machine."""

    handlers: list[AuthHandler] = []
    """The ways to log in, at most one of each type. Without one, nobody has to."""
    tls_auth_entities: list[str] = []
    """Names in a client's certificate that need no other login."""
    external_auth_config: ExternalAuth | None = None
    """Tokens that somebody else issues. By default none are accepted."""

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if len({handler.type for handler in self.handlers}) < len(self.handlers):
            raise fault(codes.DUPLICATE_NAME, "two handlers of the same type; join their keys")
        return self


class ApiKey(Section):
    """A key, and the id that it is known by."""

    id: Annotated[str, Field(min_length=1)]
    """Its id."""
    key: Annotated[str, Field(min_length=1)]
    """The key itself."""


class LocationSecret(Section):
    """A secret that all machines of a location share."""

    id: str
    """Its id."""
    secret: str
    """The secret itself."""


class CloudConfig(Section):
    """How the machine finds its fleet. The second half is filled by the cloud."""

    id: Annotated[str, Field(min_length=1)]
    """Which part of the fleet this computer is. An `api_key` or a `secret` goes with it."""
    secret: str = ""
    """What it logs in to the cloud with, if it has no `api_key`."""
    api_key: ApiKey | None = None
    """What it logs in to the cloud with."""
    app_address: str = ""
    """Where the cloud is, such as `https://fleet.example.org:443`."""
    refresh_interval: Duration = 10.0
    """How often to ask the cloud for another configuration."""
    location_secret: str = ""
    """The secret of its location, in older files."""
    location_secrets: list[LocationSecret] = []
    """The secrets of its location. Clients log in with any of them."""
    location_id: str = ""
    """Which location it is at."""
    primary_org_id: str = ""
    """Which organization it belongs to."""
    machine_id: str = ""
    """Which machine it is a part of."""
    managed_by: str = ""
    """Who looks after it, such as the address of the cloud."""
    fqdn: str = ""
    """Its name everywhere."""
    local_fqdn: str = ""
    """Its name in its own network."""
    signaling_address: str = ""
    """Where clients meet it to agree on a WebRTC connection."""
    signaling_insecure: bool = False
    """Whether they meet there without TLS."""
    tls_certificate: str = ""
    """The certificate to serve with, as PEM text. It goes with `tls_private_key`."""
    tls_private_key: str = ""
    """The private key of `tls_certificate`, as PEM text."""

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if not self.secret and self.api_key is None:
            raise fault(codes.HALF_SET, 'neither "api_key" nor "secret" is set beside "id"')
        if bool(self.tls_certificate) != bool(self.tls_private_key):
            missing = "tls_private_key" if self.tls_certificate else "tls_certificate"
            raise fault(codes.HALF_SET, f'"{missing}" is missing: certificate and key go together')
        return self


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
