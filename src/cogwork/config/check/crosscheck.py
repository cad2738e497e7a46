"""Checks across entries: between resources, and between sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from cogwork.config.check.diagnostic_collector import DiagnosticCollector
from cogwork.config.check.diagnostics import ConfigLocation, Effect, RelatedInfo
from cogwork.config.check.log_patterns import check_log_patterns
from cogwork.config.check.not_taken_over import missing_model
from cogwork.config.schema import codes
from cogwork.config.schema.default_services import DEFAULT_SERVICES
from cogwork.config.schema.existing_product.lookup import find_missing_model
from cogwork.config.schema.machine import JobConfig, MachineConfig, ResourceConfig
from cogwork.config.schema.model_catalog import ModelCatalog
from cogwork.config.schema.network import NetworkConfig
from cogwork.config.text.positions import Pointer
from cogwork.core.errors import InvalidName
from cogwork.graph.edges import (
    AmbiguousDependency,
    Cycle,
    DeclaredDependencies,
    Edges,
    MissingDependency,
    find_candidates,
    group_by_short_name,
    resolve,
)
from cogwork.graph.name import BUILTIN_NAMESPACE, Api, Reference, ResourceName
from cogwork.graph.public_apis import PUBLIC_APIS
from cogwork.net.address import is_loopback_address


@dataclass(slots=True)
class ParsedResource:
    """A resource of the file, with the dependencies found so far and their locations."""

    pointer: Pointer
    name: ResourceName
    config: ResourceConfig | None
    settings: object = None
    needs: dict[Reference, Pointer] = field(default_factory=dict)
    wants: dict[Reference, Pointer] = field(default_factory=dict)


def cross_check(
    config: MachineConfig,
    resources: Sequence[ParsedResource],
    item_pointers: Mapping[str, Sequence[Pointer]],
    collector: DiagnosticCollector,
    catalog: ModelCatalog,
) -> None:
    for resource in resources:
        if resource.config is not None:
            _check_api(resource.config, resource.pointer, collector)
            _check_model(resource.config, resource.pointer, config, collector, catalog)
    configured = {resource.name for resource in resources}
    defaults = frozenset(name for name in DEFAULT_SERVICES if name not in configured)
    edges = resolve(
        [
            *(DeclaredDependencies(r.name, tuple(r.needs), tuple(r.wants)) for r in resources),
            *(DeclaredDependencies(name, (), (), is_default=True) for name in defaults),
        ]
    )
    _report_cycles(edges, resources, collector)
    _check_references(edges, resources, defaults, collector, checkable=not config.remotes)
    if not config.remotes:
        _check_maintenance_and_jobs(config, resources, defaults, item_pointers, collector)
        names = [resource.name for resource in resources]
        check_log_patterns(config, names, item_pointers.get("log", ()), collector)
    _check_network(config, collector)


def _check_api(config: ResourceConfig, at: Pointer, collector: DiagnosticCollector) -> None:
    api = config.api
    if not _is_unknown_api(api):
        return
    choices = [str(known) for known in PUBLIC_APIS if known.kind == api.kind]
    other = next((known.kind for known in PUBLIC_APIS if known.subtype == api.subtype), None)
    collector.add(
        codes.BAD_API,
        f'unknown API "{api}"',
        (*at, "api"),
        Effect.UNHEALTHY,
        hint=f'it is a {other}; move it to "{other}s"'
        if other
        else collector.suggest(str(api), choices),
    )


def _is_unknown_api(api: Api) -> bool:
    return api.namespace == BUILTIN_NAMESPACE and api not in PUBLIC_APIS


def _check_model(
    resource: ResourceConfig,
    at: Pointer,
    config: MachineConfig,
    collector: DiagnosticCollector,
    catalog: ModelCatalog,
) -> None:
    api, model = resource.api, resource.model
    from_a_module = config.modules and not model.is_builtin
    if from_a_module or _is_unknown_api(api) or catalog.find(api, model) is not None:
        return
    missing = find_missing_model(api, model)
    if missing is not None:
        collector.record(missing_model(missing, at))
        return
    choices = sorted(schema.model.short for schema in catalog.schemas() if schema.api == api)
    hint = collector.suggest(model.short, choices)
    if hint is None and model.is_builtin and choices:
        hint = f"models of {api}: {', '.join(choices)}"
    if hint is None:
        hint = 'install the plug-in, or add the module that provides it to "modules"'
    collector.add(
        codes.UNKNOWN_MODEL,
        f'unknown model "{model.short}" for {api}',
        (*at, "model"),
        Effect.UNHEALTHY,
        hint=hint,
    )


def _check_references(
    edges: Edges,
    resources: Sequence[ParsedResource],
    defaults: Set[ResourceName],
    collector: DiagnosticCollector,
    *,
    checkable: bool,
) -> None:
    """Report missing and ambiguous dependencies.

    If `checkable` is false, names that are not configured here are not reported, because a remote
    may provide them.
    """
    names = dict.fromkeys(resource.name.short for resource in resources)
    by_short = group_by_short_name([*(resource.name for resource in resources), *defaults])
    for resource in resources:
        for fault in edges.faults.get(resource.name, ()):
            match fault:
                case MissingDependency(reference) if checkable:
                    _report_missing(resource, reference, names, collector, Effect.UNHEALTHY)
                case AmbiguousDependency(reference):
                    _report_ambiguous(resource, fault, collector, Effect.UNHEALTHY)
        for reference in resource.wants:
            found = find_candidates(reference, by_short, defaults)
            if reference in resource.needs:
                continue
            if len(found) > 1:
                fault = AmbiguousDependency(reference, tuple(found))
                _report_ambiguous(resource, fault, collector, Effect.IGNORED)
            elif not found and checkable:
                _report_missing(resource, reference, names, collector, Effect.IGNORED)


def _report_ambiguous(
    resource: ParsedResource,
    fault: AmbiguousDependency,
    collector: DiagnosticCollector,
    effect: Effect,
) -> None:
    collector.add(
        codes.AMBIGUOUS_DEPENDENCY,
        f'"{resource.name.short}" {fault.message}',
        resource.needs.get(fault.reference) or resource.wants[fault.reference],
        effect,
    )


def _report_missing(
    resource: ParsedResource,
    reference: Reference,
    names: Iterable[str],
    collector: DiagnosticCollector,
    effect: Effect,
) -> None:
    at = resource.needs.get(reference) or resource.wants[reference]
    collector.add(
        codes.MISSING_DEPENDENCY,
        f'"{resource.name.short}" {MissingDependency(reference).message}',
        at,
        effect,
        hint=collector.suggest(reference.short, (n for n in names if n != resource.name.short)),
    )


def _report_cycles(
    edges: Edges, resources: Sequence[ParsedResource], collector: DiagnosticCollector
) -> None:
    """Report each dependency cycle once."""
    by_name = {resource.name: resource for resource in resources}
    seen: set[ResourceName] = set()
    for resource in resources:
        for fault in edges.faults.get(resource.name, ()):
            if isinstance(fault, Cycle) and not seen.issuperset(fault.path):
                seen.update(fault.path)
                _report_cycle(fault, by_name, collector)
    for name, wanted in edges.dropped_dependencies:
        resource = by_name[name]
        collector.add(
            codes.CIRCULAR_OPTIONAL,
            f'"{wanted.short}" depends on "{name.short}", so "{name.short}" is built without '
            f'"{wanted.short}"',
            _find_pointer(resource.wants, wanted, resource.pointer),
            Effect.IGNORED,
        )


def _report_cycle(
    cycle: Cycle, resources: Mapping[ResourceName, ParsedResource], collector: DiagnosticCollector
) -> None:
    steps = [
        (name, _find_pointer(resources[name].needs, following, resources[name].pointer))
        for name, following in zip(cycle.path, (*cycle.path[1:], cycle.path[0]), strict=True)
    ]
    (first, at), *others = steps
    collector.add(
        codes.CIRCULAR_DEPENDENCY,
        cycle.message if others else f'"{first.short}" {cycle.message}',
        at,
        Effect.UNHEALTHY,
        hint="remove one of these dependencies" if others else "remove this dependency",
        related=tuple(
            RelatedInfo(
                f'"{name.short}" depends on the next resource here', ConfigLocation(location)
            )
            for name, location in others
        ),
    )


def _find_pointer(
    references: Mapping[Reference, Pointer], target: ResourceName, default: Pointer
) -> Pointer:
    for reference, at in references.items():
        if reference.short == target.short and reference.api in (None, target.api):
            return at
    return default


def _check_maintenance_and_jobs(
    config: MachineConfig,
    resources: Sequence[ParsedResource],
    defaults: Set[ResourceName],
    item_pointers: Mapping[str, Sequence[Pointer]],
    collector: DiagnosticCollector,
) -> None:
    if config.maintenance is not None:
        names = {str(resource.name) for resource in resources}
        sensor = config.maintenance.sensor_name
        _require_configured(sensor, names, ("maintenance", "sensor_name"), collector)
    by_short = group_by_short_name([*(resource.name for resource in resources), *defaults])
    for job, at in zip(config.jobs, item_pointers.get("jobs", ()), strict=True):
        _check_job_resource(job, by_short, defaults, (*at, "resource"), collector)


def _check_job_resource(
    job: JobConfig,
    by_short: Mapping[str, list[ResourceName]],
    defaults: Set[ResourceName],
    at: Pointer,
    collector: DiagnosticCollector,
) -> None:
    try:
        reference = Reference.parse(job.resource)
    except InvalidName as error:
        collector.add(codes.BAD_NAME, str(error), at, Effect.IGNORED)
        return
    found = find_candidates(reference, by_short, defaults)
    if len(found) > 1:
        sentence = AmbiguousDependency(reference, tuple(found)).message
        collector.add(
            codes.AMBIGUOUS_DEPENDENCY, f'job "{job.name}" {sentence}', at, Effect.IGNORED
        )
    elif not found:
        _require_configured(job.resource, set(by_short), at, collector)


def _require_configured(
    name: str, names: set[str], at: Pointer, collector: DiagnosticCollector
) -> None:
    if name not in names:
        collector.add(
            codes.MISSING_DEPENDENCY,
            f'"{name}" is not configured',
            at,
            Effect.IGNORED,
            hint=collector.suggest(name, names),
        )


def _check_network(config: MachineConfig, collector: DiagnosticCollector) -> None:
    network = config.network
    if network.tls_cert_file and not network.no_tls:
        collector.check_certificate(
            network.tls_cert_file, network.tls_key_file, ("network", "tls_cert_file")
        )
    if (
        network.tls_cert_file
        and not network.no_tls
        and network.grpc_address
        and not is_loopback_address(network.grpc_address)
    ):
        collector.add(
            codes.PLAINTEXT_ADDRESS,
            "this address serves plaintext; only bind_address uses the certificate",
            ("network", "grpc_address"),
            Effect.IGNORED,
            hint='remove "grpc_address", or bind it to localhost',
        )
    # Skip this check on a machine that has joined a cloud: the cloud decides who may log in.
    is_joined = config.cloud is not None and bool(config.cloud.fqdn)
    for key in ("bind_address", "grpc_address"):
        address = getattr(network, key)
        if address and not config.auth.is_configured and not is_joined:
            _check_exposure(address, ("network", key), network, collector)


def _check_exposure(
    address: str, at: Pointer, network: NetworkConfig, collector: DiagnosticCollector
) -> None:
    if is_loopback_address(address):
        return
    if network.insecure_without_auth:
        message = f'anyone who reaches "{address}" can control this machine'
        hint = 'require a login with "auth"'
    else:
        message = f'"{address}" is not used: without login, the machine listens on localhost only'
        hint = 'require a login with "auth", or set "insecure_without_auth" in "network"'
    collector.add(codes.OPEN_TO_ALL, message, at, Effect.IGNORED, hint=hint)
