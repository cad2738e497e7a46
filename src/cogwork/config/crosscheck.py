"""Faults that no single entry shows: between resources, and between sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cogwork.config import codes
from cogwork.config.apis import PUBLIC_APIS
from cogwork.config.catalogue import Catalogue
from cogwork.config.diagnose import Effect, Place, Related
from cogwork.config.findings import Findings
from cogwork.config.positions import Pointer
from cogwork.config.references import mentions
from cogwork.config.schema import JobConfig, MachineConfig, ResourceConfig
from cogwork.core.errors import InvalidName
from cogwork.graph.edges import (
    Ambiguous,
    Cycle,
    Declared,
    Edges,
    Missing,
    by_short_name,
    candidates,
    resolve,
)
from cogwork.graph.name import BUILTIN_NAMESPACE, Api, Reference, ResourceName

_EVERY_INTERFACE = ("", "0.0.0.0", "::", "[::]")  # noqa: S104


@dataclass(slots=True)
class Resource:
    """A resource on its way from the configuration to the graph."""

    at: Pointer
    name: ResourceName
    config: ResourceConfig | None
    settings: object = None
    needs: dict[Reference, Pointer] = field(default_factory=dict)
    wants: dict[Reference, Pointer] = field(default_factory=dict)


def cross_check(
    config: MachineConfig,
    resources: Sequence[Resource],
    places: Mapping[str, Sequence[Pointer]],
    findings: Findings,
    catalogue: Catalogue,
) -> None:
    for resource in resources:
        if resource.config is not None:
            _known_api(resource.config, resource.at, findings)
            _known_model(resource.config, resource.at, config, findings, catalogue)
    edges = resolve([Declared(r.name, tuple(r.needs), tuple(r.wants)) for r in resources])
    _circles(edges, resources, findings)
    _references(edges, resources, findings, checkable=not config.remotes)
    if not config.remotes:
        _sensor_and_jobs(config, resources, places, findings)
    _network(config, findings)


def _known_api(config: ResourceConfig, at: Pointer, findings: Findings) -> None:
    api = config.api
    if not _is_unknown(api):
        return
    choices = [str(known) for known in PUBLIC_APIS if known.kind == api.kind]
    other = next((known.kind for known in PUBLIC_APIS if known.subtype == api.subtype), None)
    findings.add(
        codes.BAD_API,
        f"there is no API {api}",
        (*at, "api"),
        Effect.UNHEALTHY,
        hint=f"it is a {other}: move it to {other}s"
        if other
        else findings.guess(str(api), choices),
    )


def _is_unknown(api: Api) -> bool:
    return api.namespace == BUILTIN_NAMESPACE and api not in PUBLIC_APIS


def _known_model(
    resource: ResourceConfig,
    at: Pointer,
    config: MachineConfig,
    findings: Findings,
    catalogue: Catalogue,
) -> None:
    api, model = resource.api, resource.model
    from_a_module = config.modules and not model.is_builtin
    if from_a_module or _is_unknown(api) or catalogue.find(api, model) is not None:
        return
    choices = sorted(shape.model.short for shape in catalogue.shapes() if shape.api == api)
    hint = findings.guess(model.short, choices)
    if hint is None and model.is_builtin and choices:
        hint = f"models of {api}: {', '.join(choices)}"
    if hint is None:
        hint = 'install the plug-in, or add the module that brings it to "modules"'
    findings.add(
        codes.UNKNOWN_MODEL,
        f"nobody provides model {model.short} of {api}",
        (*at, "model"),
        Effect.UNHEALTHY,
        hint=hint,
    )


def _references(
    edges: Edges, resources: Sequence[Resource], findings: Findings, *, checkable: bool
) -> None:
    """A name that is nowhere may still come with a remote; then it is not checkable."""
    names = dict.fromkeys(resource.name.short for resource in resources)
    by_short = by_short_name(resource.name for resource in resources)
    for resource in resources:
        for fault in edges.faults.get(resource.name, ()):
            match fault:
                case Missing(reference) if checkable:
                    _missing(resource, reference, names, findings, Effect.UNHEALTHY)
                case Ambiguous(reference):
                    _ambiguous(resource, fault, findings, Effect.UNHEALTHY)
        for reference in resource.wants:
            found = candidates(reference, by_short)
            if reference in resource.needs:
                continue
            if len(found) > 1:
                fault = Ambiguous(reference, tuple(found))
                _ambiguous(resource, fault, findings, Effect.IGNORED)
            elif not found and checkable:
                _missing(resource, reference, names, findings, Effect.IGNORED)


def _ambiguous(resource: Resource, fault: Ambiguous, findings: Findings, effect: Effect) -> None:
    findings.add(
        codes.AMBIGUOUS_DEPENDENCY,
        f'"{resource.name.short}" {fault.sentence}',
        resource.needs.get(fault.reference) or resource.wants[fault.reference],
        effect,
    )


def _missing(
    resource: Resource,
    reference: Reference,
    names: Iterable[str],
    findings: Findings,
    effect: Effect,
) -> None:
    at = resource.needs.get(reference) or resource.wants[reference]
    findings.add(
        codes.MISSING_DEPENDENCY,
        f'"{resource.name.short}" {Missing(reference).sentence}',
        at,
        effect,
        hint=findings.guess(reference.short, (n for n in names if n != resource.name.short)),
    )


def _circles(edges: Edges, resources: Sequence[Resource], findings: Findings) -> None:
    """One diagnostic a circle, whoever of it one looks at."""
    by_name = {resource.name: resource for resource in resources}
    seen: set[ResourceName] = set()
    for resource in resources:
        for fault in edges.faults.get(resource.name, ()):
            if isinstance(fault, Cycle) and not seen.issuperset(fault.path):
                seen.update(fault.path)
                _circle(fault, by_name, findings)
    for name, wanted in edges.circular_wants:
        resource = by_name[name]
        findings.add(
            codes.CIRCULAR_OPTIONAL,
            f'"{wanted.short}" depends on "{name.short}", which is built without it',
            _place_of(resource.wants, wanted, resource.at),
            Effect.IGNORED,
        )


def _circle(cycle: Cycle, resources: Mapping[ResourceName, Resource], findings: Findings) -> None:
    steps = [
        (name, _place_of(resources[name].needs, following, resources[name].at))
        for name, following in zip(cycle.path, (*cycle.path[1:], cycle.path[0]), strict=True)
    ]
    (first, at), *others = steps
    findings.add(
        codes.CIRCULAR_DEPENDENCY,
        cycle.sentence if others else f'"{first.short}" {cycle.sentence}',
        at,
        Effect.UNHEALTHY,
        hint="take one of these dependencies out" if others else "take it out",
        related=tuple(
            Related(f'"{name.short}" depends on the next one here', Place(place))
            for name, place in others
        ),
    )


def _place_of(
    references: Mapping[Reference, Pointer], target: ResourceName, otherwise: Pointer
) -> Pointer:
    for reference, at in references.items():
        if reference.short == target.short and reference.api in (None, target.api):
            return at
    return otherwise


def _sensor_and_jobs(
    config: MachineConfig,
    resources: Sequence[Resource],
    places: Mapping[str, Sequence[Pointer]],
    findings: Findings,
) -> None:
    if config.maintenance is not None:
        names = {str(resource.name) for resource in resources}
        sensor = config.maintenance.sensor_name
        _must_be_configured(sensor, names, ("maintenance", "sensor_name"), findings)
    by_short = by_short_name(resource.name for resource in resources)
    for job, at in zip(config.jobs, places.get("jobs", ()), strict=True):
        _resource_of_job(job, by_short, (*at, "resource"), findings)


def _resource_of_job(
    job: JobConfig, by_short: Mapping[str, list[ResourceName]], at: Pointer, findings: Findings
) -> None:
    try:
        reference = Reference.parse(job.resource)
    except InvalidName as error:
        findings.add(codes.BAD_NAME, str(error), at, Effect.IGNORED)
        return
    found = candidates(reference, by_short)
    if len(found) > 1:
        sentence = Ambiguous(reference, tuple(found)).sentence
        findings.add(codes.AMBIGUOUS_DEPENDENCY, f'job "{job.name}" {sentence}', at, Effect.IGNORED)
    elif not found:
        _must_be_configured(job.resource, set(by_short), at, findings)


def _must_be_configured(name: str, names: set[str], at: Pointer, findings: Findings) -> None:
    if name not in names:
        findings.add(
            codes.MISSING_DEPENDENCY,
            f'"{name}" is not configured',
            at,
            Effect.IGNORED,
            hint=findings.guess(name, names),
        )


def _network(config: MachineConfig, findings: Findings) -> None:
    network = config.network
    for mention in mentions(network, ("network",)):
        findings.file_must_exist(mention.text, mention.pointer, Effect.REFUSED)
    host = network.bind_address.rpartition(":")[0]
    if network.bind_address and host in _EVERY_INTERFACE and not config.auth.handlers:
        findings.add(
            codes.OPEN_TO_ALL,
            f'"{network.bind_address}" is every interface, and nobody has to log in',
            ("network", "bind_address"),
            Effect.IGNORED,
            hint='bind to "localhost:8080", or add an api-key handler to "auth"',
        )
