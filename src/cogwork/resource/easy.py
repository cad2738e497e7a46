"""Models written for modules, made ours: the class that serves in a module runs here as it is.

Such a class has the SDK's `MODEL`, `new(config, dependencies)` and `validate_config(config)`. They
are called on the loop, as the SDK does in a module; here everybody else waits meanwhile, and hears
of it when that takes long.
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

from cogwork.config.fields import Attributes
from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ModelName, Reference, ResourceName
from cogwork.graph.provider import Dependencies, Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.logs.entry import level_name
from cogwork.resource.model import Model, logger_of

SLOW = 0.1
"""Seconds that everybody may be held up without being told."""
_REMEMBERED = 4096
"""Resources of one model whose dependencies are kept in mind."""


class FreeAttributes(Attributes):
    """Only the code of the model knows what it reads."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True, slots=True)
class EasyModel(Model):
    builder: EasyBuilder = field(kw_only=True)


def easy_model(kind: type[Any], clock: Clock | None = None) -> EasyModel:
    """The model that a class written for a module is."""
    api, name = _identity(kind)
    builder = EasyBuilder(kind, name, clock or SystemClock())
    return EasyModel(
        api, name, FreeAttributes, builder.construct, builder.reconfigures, builder=builder
    )


def _identity(kind: type[Any]) -> tuple[Api, ModelName]:
    for attribute, example in (
        ("API", "by deriving it from a class of the SDK, such as viam.components.motor.Motor"),
        ("MODEL", 'with MODEL = "acme:demo:motor"'),
        ("new", "by deriving it from the SDK's EasyResource"),
    ):
        if not hasattr(kind, attribute):
            raise TypeError(f"{kind.__qualname__} has no {attribute}: give it one {example}")
    return Api.parse(str(kind.API)), ModelName.parse(str(kind.MODEL))


class EasyBuilder:
    """Makes, changes and closes the resources of one such class."""

    def __init__(self, kind: Any, model: ModelName, clock: Clock) -> None:
        self._kind = kind
        self._model = model
        self._clock = clock
        self._offers: dict[ResourceName, tuple[Spec, Offer]] = {}

    @property
    def reconfigures(self) -> bool:
        """The SDK builds anew instead; classes from before that have it still."""
        return hasattr(self._kind, "reconfigure")

    def offer(self, spec: Spec) -> Offer | Unavailable:
        """With the dependencies that `validate_config` names. What it refuses is asked again with
        every plan: it may look at more than the configuration."""
        known = self._offers.get(spec.name)
        if known is not None and known[0] == spec:
            return known[1]
        if spec.fault is not None:
            return Offer(self)
        try:
            needs, wants = self._dependencies_of(spec)
        except (Exception, SystemExit) as error:
            return Unavailable(f"{self._model} refuses its configuration: {_words_of(error)}")
        offer = Offer(self, in_place=self.reconfigures, needs=needs, wants=wants)
        while len(self._offers) >= _REMEMBERED:
            del self._offers[next(iter(self._offers))]
        self._offers[spec.name] = spec, offer
        return offer

    async def construct(
        self, name: ResourceName, attributes: Any, dependencies: Dependencies
    ) -> object:
        """For whoever has no spec."""
        return await self.build(Spec(name, self._model, attributes), dependencies)

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        call = partial(self._kind.new, _config(spec), _in_their_words(dependencies))
        made = await self._stepwise(spec.name, "to be built", call)
        if made is None:
            raise TypeError(f"the new of {self._model} returned nothing; return the resource")
        _log_where_rules_apply(made, spec.name)
        return made

    async def reconfigure(self, resource: Any, spec: Spec, dependencies: Dependencies) -> None:
        call = partial(resource.reconfigure, _config(spec), _in_their_words(dependencies))
        await self._stepwise(spec.name, "to be changed", call)

    async def close(self, resource: Any) -> None:
        """Stopped first, as in a module: not every `close` thinks of what moves."""
        name = ResourceName(Api.parse(str(self._kind.API)), str(getattr(resource, "name", "")))
        if callable(getattr(resource, "stop", None)):
            try:
                await self._stepwise(name, "to be stopped", resource.stop)
            except Exception as error:
                logger_of(name).warning("it could not be stopped: %s", _words_of(error))
        if callable(getattr(resource, "close", None)):
            await self._stepwise(name, "to be closed", resource.close)

    def _dependencies_of(self, spec: Spec) -> tuple[tuple[Reference, ...], tuple[Reference, ...]]:
        if not hasattr(self._kind, "validate_config"):
            return (), ()
        config = _config(spec)
        with self._watched(spec.name, "to check its configuration"):
            returned = self._kind.validate_config(config)
        if inspect.iscoroutine(returned):
            returned.close()
            raise _BadAnswer("its validate_config is async; write it with def")
        required, optional = _both_lists(returned)
        return tuple(map(Reference.parse, required)), tuple(map(Reference.parse, optional))

    async def _stepwise(self, name: ResourceName, doing: str, call: Callable[[], Any]) -> Any:
        """In the SDK they are no coroutines; one that is one holds nobody up while it awaits."""
        with self._watched(name, doing):
            returned = call()
        if inspect.isawaitable(returned):
            return await _Steps(returned, partial(self._watched, name, doing))
        return returned

    @contextlib.contextmanager
    def _watched(self, name: ResourceName, doing: str) -> Iterator[None]:
        start = self._clock.monotonic()
        try:
            yield
        finally:
            taken = self._clock.monotonic() - start
            if taken > SLOW:
                logger_of(name).warning(
                    "%s took %.0f ms %s and held up everybody meanwhile; "
                    "move slow work into a thread",
                    self._model,
                    taken * 1000,
                    doing,
                )


class _BadAnswer(CogworkError):
    """A class that does not keep to what the SDK asks of it."""


class _Steps:
    """An awaitable, with something around each of its steps."""

    def __init__(
        self,
        awaitable: Awaitable[Any],
        around: Callable[[], contextlib.AbstractContextManager[None]],
    ) -> None:
        self._awaitable = awaitable
        self._around = around

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self._awaitable.__await__()
        resume: Callable[[], Any] = partial(next, steps)
        while True:
            with self._around():
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


def _both_lists(returned: Any) -> tuple[Iterable[str], Iterable[str]]:
    """The required and the optional ones. Older classes return a single list."""
    both = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, ())
    if not all(_is_list_of_names(names) for names in both):
        raise _BadAnswer(
            f"its validate_config returned {returned!r}; return two lists of names: what it needs, "
            "and what it uses when it is there"
        )
    return both


def _is_list_of_names(names: Any) -> bool:
    listed = isinstance(names, Iterable) and not isinstance(names, str | bytes | Mapping)
    return listed and all(isinstance(name, str) for name in names)


def _config(spec: Spec) -> Any:
    """As a module gets it."""
    importlib.import_module("cogwork.resource.sdk")  # ahead of whatever imports the SDK
    from viam.proto.app.robot import ComponentConfig, LogConfiguration

    from cogwork.resource.structs import to_struct

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


def _in_their_words(dependencies: Dependencies) -> dict[Any, object]:
    from viam.proto.common import ResourceName as TheirName

    return {
        TheirName(
            namespace=name.api.namespace,
            type=name.api.kind,
            subtype=name.api.subtype,
            name=name.short,
        ): resource
        for name, resource in dependencies.items()
    }


def _log_where_rules_apply(resource: Any, name: ResourceName) -> None:
    """In place of the SDK's own logger, of which no rule of the machine knows."""
    logger = getattr(resource, "logger", None)
    if logger is None or getattr(logger, "name", "") == f"{name.api}.{name.name}":
        with contextlib.suppress(AttributeError):
            resource.logger = logger_of(name)


def _words_of(error: BaseException) -> str:
    """A bare exception is raised for its words; of others the kind says more than they do."""
    words = str(error)
    foreseen = type(error) in (Exception, ValueError) or hasattr(error, "grpc_error")
    if words and (foreseen or isinstance(error, CogworkError)):
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
