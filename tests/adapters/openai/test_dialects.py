"""Rows are found by host first, then by the model's name."""

from __future__ import annotations

import pytest

from adapters.openai.dialects import choose_dialect


@pytest.mark.parametrize(
    ("host", "model", "name"),
    [
        ("api.deepseek.com", "deepseek-chat", "deepseek"),
        ("API.DeepSeek.com", "deepseek-chat", "deepseek"),
        ("api.moonshot.cn", "kimi-k2.6", "kimi"),
        ("openrouter.ai", "deepseek/deepseek-v3.2", "openrouter"),
        ("api.groq.com", "moonshotai/kimi-k2.5", "groq"),
        ("mine.openai.azure.com", "gpt-5", "openai"),
        ("proxy.example", "deepseek-ai/DeepSeek-V4", "deepseek"),
        ("proxy.example", "deepseek-r1", "plain"),
        ("proxy.example", "zai-org/GLM-4.6", "glm"),
        ("notapi.deepseek.com.evil.example", "x", "plain"),
        ("localhost", "qwen3", "plain"),
    ],
)
def test_the_first_row_that_fits_wins(host: str, model: str, name: str) -> None:
    assert choose_dialect(host, model).name == name
