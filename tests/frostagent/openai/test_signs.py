"""Refusals told by their words (section 7)."""

from __future__ import annotations

from frostagent.models.openai.errors import classify
from frostagent.types.errors import BadHistory, ModelAuth, ModelBilling
from tests.cases import each_case
from tests.frostagent.openai.test_errors import dump


@each_case("code", [400, "invalid_request_error"])
def test_a_picture_that_could_not_be_read_is_told_apart_from_a_model_that_sees_none(code: object) -> None:
    """llama.cpp has no code of its own for it; what it cannot read says nothing of other pictures."""
    bad = classify(400, dump({"error": {"code": code, "message": "Failed to load image or audio file"}}))
    assert bad.code == "invalid_image"
    named = classify(400, dump({"error": {"code": "invalid_image_format", "message": "no"}}))
    assert named.code == "invalid_image_format"
    blind = classify(400, dump({"error": {"code": code, "message": "m is not a multimodal model"}}))
    assert not blind.code.startswith("invalid_image")


@each_case(
    ("status", "error"),
    [
        (403, {"code": 30001, "message": "Sorry, your account balance is insufficient"}),
        (403, {"message": "The free tier of the model has been exhausted.", "code": "AllocationQuota.FreeTierOnly"}),
        (403, {"error": "Your team has either used all available credits or reached its monthly spending limit."}),
        (403, {"error": {"message": "Key limit exceeded (monthly limit)", "code": 403}}),
        (403, {"error": {"message": "no quota for this model"}}),
        (429, {"error": {"message": "Your prepayment credits are depleted."}}),
        (429, {"error": {"code": "SetLimitExceeded", "message": "the model service has been paused"}}),
        (429, {"error": {"message": "Billing hard limit has been reached", "code": "billing_hard_limit_reached"}}),
        (400, {"error": {"message": "You have reached your specified API usage limits."}}),
        (400, {"error": {"message": "Your credit balance is too low to access the API."}}),
    ],
)
def test_7_billing_in_hiding_is_billing(status: int, error: object) -> None:
    assert type(classify(status, dump(error))) is ModelBilling


@each_case("status", [401, 403])
@each_case("words", ["Forbidden", "Your key may not use this model", ""])
def test_7_without_such_words_it_is_the_key(status: int, words: str) -> None:
    assert type(classify(status, dump({"error": {"message": words}}))) is ModelAuth


@each_case(
    "words",
    [
        "Unexpected role 'user' after role 'tool'",
        "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
        "Not the same number of function calls and responses",
        "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
        'messages: first message must use the "user" role',
        "the message at position 2 with role 'assistant' must not be empty",
        "Please ensure that function call turn comes immediately after a user turn",
        "invalid params, tool call result does not follow tool call (2013)",
        "System message must be at the beginning.",
        "tool_call_id functions.f:0 is not found",
    ],
)
def test_7_a_history_that_is_refused_is_told_by_its_words(words: str) -> None:
    assert type(classify(400, dump({"error": {"message": words}}))) is BadHistory
