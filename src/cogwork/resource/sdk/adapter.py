"""Adapter that runs a resource class written for a module in this process, unchanged.

Such a class has the SDK's `MODEL`, `new(config, dependencies)` and `validate_config(config)`. They
are called on the event loop, as in a module. In this process, they block the whole server, so slow
calls are logged.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import ConfigDict

from cogwork.config.schema.fields import Attributes
from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ModelName, Reference, ResourceName
from cogwork.graph.provider import Dependencies, Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.logs.entry import level_name
from cogwork.resource.model import Model, logger_of

SLOW_CALL = 0.1
"""Seconds that a call may block the event loop before a warning is logged."""
_MAX_CACHED_OFFERS = 4096
"""Maximum number of resources of one model whose dependencies are cached."""


class FreeAttributes(Attributes):
    """Attributes without a schema, because only the code of the model knows its attributes."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True, slots=True)
class SdkClassModel(Model):
    """A model whose resources are instances of an SDK class."""

    builder: SdkClassBuilder = field(kw_only=True)

    @property
    def module(self) -> str:
        return self.builder.module


def model_from_sdk_class(kind: type[Any], clock: Clock | None = None) -> SdkClassModel:
    """Return the model of a class written for a module."""
    api, name = _read_identity(kind)
    builder = SdkClassBuilder(kind, name, clock or SystemClock())
    return SdkClassModel(
        api, name, FreeAttributes, builder.construct, builder.reconfigures, builder=builder
    )


def _read_identity(kind: type[Any]) -> tuple[Api, ModelName]:
    for attribute, hint in (
        ("API", "derive the class from one of the SDK, such as viam.components.motor.Motor"),
        ("MODEL", 'add MODEL = "acme:demo:motor"'),
        ("new", "derive the class from the SDK's EasyResource"),
    ):
        if not hasattr(kind, attribute):
            raise TypeError(f'class {kind.__qualname__} has no attribute "{attribute}"; {hint}')
    return Api.parse(str(kind.API)), ModelName.parse(str(kind.MODEL))


class SdkClassBuilder:
    """Builds, reconfigures and closes the resources of an SDK class."""

    def __init__(self, kind: Any, model: ModelName, clock: Clock) -> None:
        self._sdk_class = kind
        self._model = model
        self._clock = clock
        self._offers: dict[ResourceName, tuple[Spec, Offer]] = {}

    @property
    def module(self) -> str:
        return str(self._sdk_class.__module__)

    @property
    def reconfigures(self) -> bool:
        """Whether the class has `reconfigure`. Resources of newer SDK classes are rebuilt
        instead."""
        return hasattr(self._sdk_class, "reconfigure")

    def offer(self, spec: Spec) -> Offer | Unavailable:
        """Return an offer with the dependencies that `validate_config` returns.

        A rejection is not cached, because `validate_config` may depend on more than the
        configuration.
        """
        cached = self._offers.get(spec.name)
        if cached is not None and cached[0] == spec:
            return cached[1]
        if spec.fault is not None:
            return Offer(self)
        try:
            needs, wants = self._get_dependencies(spec)
        except (Exception, SystemExit) as error:
            return Unavailable(f"{self._model} rejects its configuration: {_describe_error(error)}")
        offer = Offer(self, in_place=self.reconfigures, needs=needs, wants=wants)
        while len(self._offers) >= _MAX_CACHED_OFFERS:
            del self._offers[next(iter(self._offers))]
        self._offers[spec.name] = spec, offer
        return offer

    async def construct(
        self, name: ResourceName, attributes: Any, dependencies: Dependencies
    ) -> object:
        """Build a resource from its attributes and dependencies, without a spec from the graph."""
        return await self.build(Spec(name, self._model, attributes), dependencies)

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        call = partial(
            self._sdk_class.new, _to_component_config(spec), _to_sdk_dependencies(dependencies)
        )
        resource = await self._call_timed(spec.name, "building", call)
        if resource is None:
            raise TypeError(f"new() of {self._model} returned None; return the resource")
        _replace_logger(resource, spec.name)
        return resource

    async def reconfigure(self, resource: Any, spec: Spec, dependencies: Dependencies) -> None:
        call = partial(
            resource.reconfigure, _to_component_config(spec), _to_sdk_dependencies(dependencies)
        )
        await self._call_timed(spec.name, "reconfiguring", call)

    async def close(self, resource: Any) -> None:
        """Stop a resource, then close it. As in a module, `close` alone may leave a motion
        running."""
        name = ResourceName(Api.parse(str(self._sdk_class.API)), str(getattr(resource, "name", "")))
        if callable(getattr(resource, "stop", None)):
            try:
                await self._call_timed(name, "stopping", resource.stop)
            except Exception as error:
                logger_of(name).warning("stopping the resource failed: %s", _describe_error(error))
        if callable(getattr(resource, "close", None)):
            await self._call_timed(name, "closing", resource.close)

    def _get_dependencies(self, spec: Spec) -> tuple[tuple[Reference, ...], tuple[Reference, ...]]:
        if not hasattr(self._sdk_class, "validate_config"):
            return (), ()
        config = _to_component_config(spec)
        with self._warn_if_slow(spec.name, "validating"):
            returned = self._sdk_class.validate_config(config)
        if inspect.iscoroutine(returned):
            returned.close()
            raise _InvalidReturn("validate_config is async; define it with def")
        required, optional = _split_dependencies(returned)
        return tuple(map(Reference.parse, required)), tuple(map(Reference.parse, optional))

    async def _call_timed(self, name: ResourceName, action: str, call: Callable[[], Any]) -> Any:
        """Call a function or coroutine function, and time each step in which it blocks the loop."""
        with self._warn_if_slow(name, action):
            returned = call()
        if inspect.isawaitable(returned):
            return await _SteppedAwaitable(returned, partial(self._warn_if_slow, name, action))
        return returned

    @contextlib.contextmanager
    def _warn_if_slow(self, name: ResourceName, action: str) -> Iterator[None]:
        start = self._clock.monotonic()
        try:
            yield
        finally:
            taken = self._clock.monotonic() - start
            if taken > SLOW_CALL:
                logger_of(name).warning(
                    "%s %s blocked the event loop for %.0f ms; move slow work into a thread",
                    action,
                    self._model,
                    taken * 1000,
                )


class _InvalidReturn(CogworkError):
    """A method of a class violates the SDK's contract."""


class _SteppedAwaitable:
    """An awaitable that enters a context manager around each of its steps."""

    def __init__(
        self,
        awaitable: Awaitable[Any],
        around: Callable[[], contextlib.AbstractContextManager[None]],
    ) -> None:
        self._awaitable = awaitable
        self._step_context = around

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self._awaitable.__await__()
        resume: Callable[[], Any] = partial(next, steps)
        while True:
            with self._step_context():
                try:
                    awaited = resume()
                except StopIteration as end:
                    return end.value
            try:
                yield awaited
            except BaseException as error:
                resume = partial(steps.throw, error)
            else:
                resume = partial(next, steps)


def _split_dependencies(returned: Any) -> tuple[Iterable[str], Iterable[str]]:
    """Return the required and the optional dependencies. Older classes return a single list."""
    both = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, ())
    if not all(_is_list_of_names(names) for names in both):
        raise _InvalidReturn(
            f"validate_config returned {returned!r}; return two lists of names: the required "
            "dependencies and the optional ones"
        )
    return both


def _is_list_of_names(names: Any) -> bool:
    listed = isinstance(names, Iterable) and not isinstance(names, str | bytes | Mapping)
    return listed and all(isinstance(name, str) for name in names)


def _to_component_config(spec: Spec) -> Any:
    """Return the configuration in the form that a module receives."""
    # Must precede the import of the SDK.
    importlib.import_module("cogwork.resource.sdk.clean_import")
    from viam.proto.app.robot import ComponentConfig, LogConfiguration

    from cogwork.resource.messages.structs import to_struct

    attributes = spec.settings.model_extra if isinstance(spec.settings, FreeAttributes) else None
    api = spec.name.api
    return ComponentConfig(
        name=spec.name.name,
        namespace=api.namespace,
        type=api.subtype,
        api=str(api),
        model=str(spec.model),
        attributes=to_struct(attributes),
        depends_on=[str(need) for need in spec.needs],
        log_configuration=LogConfiguration(
            level=level_name(logger_of(spec.name).getEffectiveLevel()).lower()
        ),
    )


def _to_sdk_dependencies(dependencies: Dependencies) -> dict[Any, object]:
    from viam.proto.common import ResourceName as SdkResourceName

    return {
        SdkResourceName(
            namespace=name.api.namespace,
            type=name.api.kind,
            subtype=name.api.subtype,
            name=name.short,
        ): resource
        for name, resource in dependencies.items()
    }


def _replace_logger(resource: Any, name: ResourceName) -> None:
    """Replace the SDK's own logger, to which the machine's log rules do not apply."""
    logger = getattr(resource, "logger", None)
    if logger is None or getattr(logger, "name", "") == f"{name.api}.{name.name}":
        with contextlib.suppress(AttributeError):
            resource.logger = logger_of(name)


def _describe_error(error: BaseException) -> str:
    """Return the message of an error. Include its type unless the class raised it on purpose."""
    message = str(error)
    is_deliberate = type(error) in (Exception, ValueError) or hasattr(error, "grpc_error")
    if message and (is_deliberate or isinstance(error, CogworkError)):
        return message
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
