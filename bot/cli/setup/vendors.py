"""The model services that `setup` offers by name; anything else is typed as a base url."""

from __future__ import annotations

from dataclasses import dataclass

from config.values import halved


@dataclass(frozen=True, slots=True)
class Vendor:
    """A service with an OpenAI-compatible API.

    `name` is what a person types, `page` where its keys are made (empty for a server of one's own,
    which needs none). Model names change every few months, so none is kept here.
    """

    name: str
    title: str
    base_url: str
    page: str = ""

    @property
    def needs_key(self) -> bool:
        """Whether it answers nobody without a key."""
        return bool(self.page)


VENDORS = (
    Vendor(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com/v1",
        "https://platform.deepseek.com/api_keys",
    ),
    Vendor(
        "dashscope",
        "通义千问 Qwen (DashScope)",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "https://bailian.console.aliyun.com",
    ),
    Vendor(
        "moonshot",
        "月之暗面 Kimi (Moonshot)",
        "https://api.moonshot.cn/v1",
        "https://platform.moonshot.cn/console/api-keys",
    ),
    Vendor(
        "zhipu",
        "智谱 GLM (Zhipu)",
        "https://open.bigmodel.cn/api/paas/v4",
        "https://open.bigmodel.cn/usercenter/apikeys",
    ),
    Vendor(
        "siliconflow",
        "硅基流动 SiliconFlow",
        "https://api.siliconflow.cn/v1",
        "https://cloud.siliconflow.cn/account/ak",
    ),
    Vendor(
        "ark",
        "火山方舟 Volcengine Ark",
        "https://ark.cn-beijing.volces.com/api/v3",
        "https://console.volcengine.com/ark",
    ),
    Vendor(
        "openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "https://openrouter.ai/keys"
    ),
    Vendor("openai", "OpenAI", "https://api.openai.com/v1", "https://platform.openai.com/api-keys"),
    Vendor("ollama", "Ollama (本机 local)", "http://127.0.0.1:11434/v1"),
    Vendor("llamacpp", "llama.cpp (本机 local)", "http://127.0.0.1:8080/v1"),
    Vendor("vllm", "vLLM (本机 local)", "http://127.0.0.1:8000/v1"),
)


def find_vendor(typed: str) -> Vendor | None:
    """The vendor of this name or of this number in the list (from 1), if there is one."""
    text = halved(typed).lower()
    by_number = {str(number): vendor for number, vendor in enumerate(VENDORS, 1)}
    return by_number.get(text) or next((vendor for vendor in VENDORS if vendor.name == text), None)


def vendor_of(base_url: str) -> Vendor | None:
    """The vendor behind a base url, if it is one of these."""
    return next((vendor for vendor in VENDORS if vendor.base_url == base_url), None)
