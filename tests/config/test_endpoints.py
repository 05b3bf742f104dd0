"""Who is asked, as the settings say it."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from config.endpoints import Endpoint, fallbacks, in_order
from config.settings import Settings
from config.values import Wrong
from tests.cases import each_case


def test_the_coder_is_the_main_model_where_nothing_else_is_set() -> None:
    settings = Settings(llm_base_url="https://main.test/v1", llm_api_key=SecretStr("k"), llm_model="m")
    assert settings.coder_endpoint == settings.main_model


def test_who_is_asked_is_each_once_in_order() -> None:
    b = {"base_url": "https://b.test", "api_key": "kb", "model": "b"}
    settings = Settings.model_validate(
        {
            "llm_base_url": "https://main.test",
            "llm_api_key": "k",
            "llm_model": "m",
            "llm_context": 4096,
            "llm_fallbacks": [b, {"base_url": "https://main.test", "api_key": "k", "model": "m", "context": 4096}, b],
        }
    )
    main, second = settings.main_models
    assert main == settings.main_model
    assert (second.base_url, second.keys, second.model) == ("https://b.test", ("kb",), "b")
    assert settings.coder_models == settings.main_models
    assert settings.vision_models == ()
    other = settings.model_copy(update={"coder_model": "c", "llm_vision_model": "v"})
    assert [(one.model, one.context) for one in other.coder_models] == [("c", 0), ("m", 4096), ("b", 0)]
    assert settings.model_copy(update={"llm_vision_model": settings.llm_model}).vision_models == ()
    assert [(one.model, one.keys) for one in other.vision_models] == [("v", ("k",)), ("m", ("k",)), ("b", ("kb",))]


def test_a_key_may_be_several() -> None:
    settings = Settings(llm_api_key=SecretStr(" sk-one , sk-two,sk-one"))
    assert settings.main_model.keys == ("sk-one", "sk-two")
    assert Settings().main_model.keys == ("",)


def test_the_coder_may_differ_in_model_and_key_only() -> None:
    settings = Settings(
        llm_base_url="https://main.test", llm_api_key=SecretStr("k"), coder_api_key=SecretStr("c"), coder_model="big"
    )
    assert settings.coder_endpoint.base_url == "https://main.test"
    assert settings.coder_endpoint.api_key.get_secret_value() == "c"
    assert settings.coder_endpoint.model == "big"


def test_the_main_key_never_goes_to_another_service() -> None:
    settings = Settings(
        llm_base_url="https://main.test", llm_api_key=SecretStr("k"), llm_model="m", coder_base_url="https://coder.test"
    )
    assert settings.coder_endpoint.base_url == "https://coder.test"
    assert settings.coder_endpoint.api_key.get_secret_value() == ""
    assert settings.coder_endpoint.model == "m"


def test_each_is_asked_once_where_it_stands_first() -> None:
    one, two = (Endpoint(f"https://{name}.test", SecretStr("k"), name) for name in ("one", "two"))
    assert in_order(one, two, one) == (one, two)
    assert in_order() == ()


MODEL = {"base_url": "https://b.test/v1", "api_key": "sk-b", "model": "b"}


def test_fallbacks_are_a_list_of_models() -> None:
    text = '[{"base_url": "https://b.test/v1/chat/completions", "api_key": "sk-b", "model": "b"}]'
    assert fallbacks(text) == fallbacks([MODEL]) == [Endpoint("https://b.test/v1", SecretStr("sk-b"), "b")]
    assert fallbacks([MODEL | {"dialect": "GLM"}])[0].dialect == "glm"
    assert fallbacks("[]") == []


@each_case(
    ("given", "what"),
    [
        ('[{"api_key": "sk-b"', "is not good JSON"),
        (MODEL, "is not a JSON list"),
        ([MODEL, "sk-b"], "entry 2 is not a JSON object"),
        ([MODEL | {"modle": "b"}], "Did you mean model?"),
        ([MODEL | {"zzz": "b"}], "which is not a known name"),
        ([MODEL | {"model": 1}], "entry 1: model is not a text"),
        ([MODEL | {"model": ""}], "entry 1 has no model"),
        ([MODEL | {"base_url": ""}], "entry 1 has no base_url"),
        ([MODEL | {"base_url": "b.test"}], "entry 1 does not begin with https:// or http://"),
        ([MODEL | {"api_key": "Bearer sk-b"}], "entry 1 has a space"),
        ([MODEL | {"context": -1}], "entry 1 -1 is out of range"),
    ],
)
def test_what_is_wrong_with_a_fallback_is_told_with_its_place(given: object, what: str) -> None:
    with pytest.raises(Wrong) as caught:
        fallbacks(given)
    assert what in str(caught.value)
    assert "sk-b" not in str(caught.value)
