from __future__ import annotations

from typing import Any

from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Providers, Unavailable
from cogwork.graph.spec import Spec

SPEC = Spec(ResourceName(Api.parse("rdk:component:generic"), "a"), ModelName.parse("acme:x:y"))


class Answers:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def offer(self, spec: Spec) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_the_first_who_knows_the_model_answers() -> None:
    providers = Providers({"none": Answers(None), "down": Answers(Unavailable("it is starting"))})
    assert providers.offer(SPEC) == Unavailable("it is starting")
    providers.remove("down")
    answer = providers.offer(SPEC)
    assert isinstance(answer, Unavailable)
    assert answer.reason.startswith('unknown model "acme:x:y" for rdk:component:generic')


def test_a_provider_that_fails_or_answers_nonsense_is_unavailable() -> None:
    assert Providers({"p": Answers(ValueError("oops"))}).offer(SPEC) == Unavailable(
        "provider p failed: oops"
    )
    assert Providers({"p": Answers(42)}).offer(SPEC) == Unavailable(
        "provider p returned 42, which is not an offer"
    )


def test_listeners_hear_of_changes_until_they_stop_listening() -> None:
    providers = Providers()
    heard: list[str] = []
    stop = providers.subscribe(lambda: heard.append("change"))
    providers.add("p", Answers(None))
    providers.remove("p")
    stop()
    stop()
    providers.add("p", Answers(None))
    assert heard == ["change", "change"]
