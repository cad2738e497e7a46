from __future__ import annotations

from typing import Any

from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Providers, Unavailable
from cogwork.graph.spec import Spec

SPEC = Spec(ResourceName(Api.parse("rdk:component:generic"), "a"), ModelName.parse("acme:x:y"))


class StubProvider:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def offer(self, spec: Spec) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_first_provider_that_knows_the_model_answers() -> None:
    providers = Providers(
        {"none": StubProvider(None), "down": StubProvider(Unavailable("it is starting"))}
    )
    assert providers.offer(SPEC) == Unavailable("it is starting")
    providers.remove("down")
    answer = providers.offer(SPEC)
    assert isinstance(answer, Unavailable)
    assert answer.reason.startswith('unknown model "acme:x:y" for rdk:component:generic')


def test_provider_that_raises_or_returns_no_offer_is_unavailable() -> None:
    assert Providers({"p": StubProvider(ValueError("oops"))}).offer(SPEC) == Unavailable(
        "provider p failed: oops"
    )
    assert Providers({"p": StubProvider(42)}).offer(SPEC) == Unavailable(
        "provider p returned 42, which is not an offer"
    )


def test_subscribers_are_notified_until_they_unsubscribe() -> None:
    providers = Providers()
    notifications: list[str] = []
    stop = providers.subscribe(lambda: notifications.append("change"))
    providers.add("p", StubProvider(None))
    providers.remove("p")
    stop()
    stop()
    providers.add("p", StubProvider(None))
    assert notifications == ["change", "change"]
