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
from cogwork.core.errors import InvalidName
from cogwork.graph.name import BUILTIN_FAMILY, BUILTIN_NAMESPACE, ModelName, ResourceName

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


class LogConfiguration(Section):
    """The log level of one resource."""

    level: LevelField


class AssociatedConfig(Section):
    """What a service reads beside a resource, such as data capture."""

    type: str
    attributes: Attributes = {}


class Vector(Section):
    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


class Orientation(Section):
    type: str
    value: JsonValue = None


class Frame(Section):
    """Where something is, in millimetres from its parent."""

    parent: str
    id: str | None = None
    translation: Vector = Vector()
    orientation: Orientation | None = None
    geometry: dict[str, JsonValue] | None = None


class ResourceConfig(Section):
    """One component or service."""

    kind: ClassVar[str]

    name: ResourceNameField
    api: ApiField
    model: ModelField
    attributes: Attributes = {}
    depends_on: list[str] = []
    frame: Frame | None = None
    log_configuration: LogConfiguration | None = None
    service_configs: list[AssociatedConfig] = []

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
    kind = "component"


class ServiceConfig(ResourceConfig):
    kind = "service"

    name: ResourceNameField = "builtin"
    model: ModelField = ModelName(BUILTIN_NAMESPACE, BUILTIN_FAMILY, "builtin")


class AppStatus(Section):
    """What the cloud found wrong with a module or a package."""

    error: str | None = None


class ModuleConfig(Section):
    """Other people's resources, in a process of their own."""

    name: LongNameField
    executable_path: str = ""
    type: Literal["local", "registry"] = "local"
    module_id: str = ""
    log_level: LevelField | None = None
    env: dict[str, str] = {}
    tcp_mode: bool = False
    first_run_timeout: Duration = 3600.0
    status: AppStatus | None = None

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
    type: str
    payload: str


class RemoteAuth(Section):
    credentials: Credentials | None = None
    entity: str = ""


class RemoteConfig(Section):
    """Another machine whose resources are used as our own."""

    name: ResourceNameField
    address: Annotated[str, Field(min_length=1)]
    frame: Frame | None = None
    auth: RemoteAuth | None = None
    managed_by: str = ""
    insecure: bool = False
    connection_check_interval: Duration = 10.0
    reconnect_interval: Duration = 1.0
    service_configs: list[AssociatedConfig] = []
    secret: str = ""
    prefix: str = ""


class ProcessConfig(Section):
    """A program that runs beside the machine."""

    id: LongNameField
    name: Annotated[str, Field(min_length=1)]
    args: list[str] = []
    cwd: str = ""
    one_shot: bool = False
    username: str = ""
    env: dict[str, str] = {}
    log: bool = False
    stop_signal: str | int = "SIGTERM"
    stop_timeout: Duration = 10.0


class PackageConfig(Section):
    """A versioned directory of files: a model, a module, a map."""

    name: LongNameField
    package: Annotated[str, Field(min_length=1)]
    version: str = "latest"
    type: Literal["ml_model", "module", "slam_map", "archive"] = "ml_model"
    status: AppStatus | None = None


class Sessions(Section):
    heartbeat_window: Annotated[Duration, AfterValidator(_heartbeat)] = 2.0


class TunnelEndpoint(Section):
    port: Annotated[int, Field(ge=1, le=65535)]
    connection_timeout: Duration = 10.0


class NetworkConfig(Section):
    """Where and how the machine is reached."""

    fqdn: str = ""
    bind_address: Annotated[str, AfterValidator(_host_and_port)] = ""
    grpc_address: Annotated[str, AfterValidator(_host_and_port)] = ""
    """A second address for gRPC alone, which moves large messages faster."""
    tls_cert_file: FileField = ""
    tls_key_file: FileField = ""
    no_tls: bool = False
    sessions: Sessions = Sessions()
    traffic_tunnel_endpoints: list[TunnelEndpoint] = []

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if bool(self.tls_cert_file) != bool(self.tls_key_file):
            missing = "tls_key_file" if self.tls_cert_file else "tls_cert_file"
            raise fault(codes.HALF_SET, f'"{missing}" is missing: certificate and key go together')
        return self


class AuthHandler(Section):
    type: Literal["api-key"]
    config: dict[str, JsonValue]

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
    jwks: dict[str, JsonValue]


class AuthConfig(Section):
    """Who may use the machine."""

    handlers: list[AuthHandler] = []
    tls_auth_entities: list[str] = []
    external_auth_config: ExternalAuth | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if len({handler.type for handler in self.handlers}) < len(self.handlers):
            raise fault(codes.DUPLICATE_NAME, "two handlers of the same type; join their keys")
        return self


class ApiKey(Section):
    id: Annotated[str, Field(min_length=1)]
    key: Annotated[str, Field(min_length=1)]


class LocationSecret(Section):
    id: str
    secret: str


class CloudConfig(Section):
    """How the machine finds its fleet. The second half is filled by the cloud."""

    id: Annotated[str, Field(min_length=1)]
    secret: str = ""
    api_key: ApiKey | None = None
    app_address: str = ""
    refresh_interval: Duration = 10.0
    location_secret: str = ""
    location_secrets: list[LocationSecret] = []
    location_id: str = ""
    primary_org_id: str = ""
    machine_id: str = ""
    managed_by: str = ""
    fqdn: str = ""
    local_fqdn: str = ""
    signaling_address: str = ""
    signaling_insecure: bool = False
    tls_certificate: str = ""
    tls_private_key: str = ""

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
    level: LevelField


class MaintenanceConfig(Section):
    """Which sensor says when an update may interrupt the machine."""

    sensor_name: Annotated[str, AfterValidator(_full_name_of_a_sensor)]
    maintenance_allowed_key: Annotated[str, Field(min_length=1)]


class JobConfig(Section):
    """A method of a resource, called on a schedule."""

    name: LongNameField
    schedule: Annotated[str, Field(min_length=1)]
    resource: Annotated[str, Field(min_length=1)]
    method: Annotated[str, Field(min_length=1)]
    command: dict[str, JsonValue] | None = None
    log_configuration: LogConfiguration | None = None


class TracingConfig(Section):
    enabled: bool = False
    disk: bool = False
    console: bool = False
    otlpendpoint: str = ""


class MachineConfig(Section):
    """One machine."""

    schema_location: Annotated[str, Field(alias="$schema")] = ""
    cloud: CloudConfig | None = None
    modules: list[ModuleConfig] = []
    remotes: list[RemoteConfig] = []
    components: list[ComponentConfig] = []
    services: list[ServiceConfig] = []
    processes: list[ProcessConfig] = []
    packages: list[PackageConfig] = []
    network: NetworkConfig = NetworkConfig()
    auth: AuthConfig = AuthConfig()
    log: list[LogRule] = []
    maintenance: MaintenanceConfig | None = None
    jobs: list[JobConfig] = []
    tracing: TracingConfig = TracingConfig()
    debug: bool = False
    enable_web_profile: bool = False
    disable_log_deduplication: bool = False
    revision: str = ""
