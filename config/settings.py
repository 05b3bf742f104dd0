"""All settings, frozen once read.

A field has its variable's name in lower case: `LLM_BASE_URL` is `settings.llm_base_url`.
`Settings(...)` reads nothing itself; `config/loading.py` does, and `config/checks.py` checks
combinations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from bot.core.language import Bilingual
from config import tokens, values
from config.described import (
    CALLS,
    DAYS,
    DOLLARS,
    FOLDER,
    GROUPS,
    LINKS,
    MESSAGES,
    QUESTIONS,
    REPLIES,
    REQUESTS,
    SECONDS,
    TOKENS,
    About,
)
from config.endpoints import Endpoint, fallbacks, in_order
from config.persona_files import PersonaFile, PersonaHead, find_persona, read_persona_file
from config.values import Owners, hours, owners, time_of_day, zone
from frostagent.types.errors import ConfigError, Problem

DEFAULT_PERSONA = Path(__file__).parent / "personas" / "default.md"
DEFAULT_STORE = "sqlite+aiosqlite:///data/frostagent.db"

DIALECTS = (
    "plain", "anthropic", "dashscope", "deepseek", "gemini", "glm", "groq", "kimi", "mimo",
    "mistral", "openai", "openrouter", "stepfun",
)  # fmt: skip
"""The values of LLM_DIALECT, as in `frostagent/models/openai/dialects.py` (a test compares)."""

SEARCH_KINDS = ("none", "searxng", "tavily", "bocha", "brave", "zhipu", "ddgs")
"""What SEARCH_KIND may be: the rows of `tools/search_web/services.py`, and none of them (a test
compares).
"""
WITHOUT_ACCOUNT = frozenset({"ddgs", "none"})  # these need neither an address nor a key

Names = Annotated[tuple[str, ...], BeforeValidator(values.names)]
QQNumbers = Annotated[frozenset[int], BeforeValidator(values.qq_numbers)]
Host = Annotated[str, AfterValidator(values.host)]
BaseUrl = Annotated[str, AfterValidator(values.base_url)]
Secret = Annotated[SecretStr, AfterValidator(values.secret)]
Keys = Annotated[SecretStr, AfterValidator(values.keys)]
FilePath = Annotated[Path, BeforeValidator(values.path)]
Dollars = Annotated[float, BeforeValidator(values.Number(0, 1_000_000))]
Tokens = Annotated[int, BeforeValidator(values.Whole(0, 10**12))]
Often = tuple[int, float] | None
Mode = Literal["reverse", "forward"]
Scope = Literal["group", "member"]
Hours = Annotated[tuple[tuple[int, int], ...], BeforeValidator(hours)]
NewGroup = Literal["ask", "live", "shadow", "off"]
QuietMode = Literal["weak", "all"]
Accept = Literal["ask", "friends", "none"]
Language = Literal["", "zh", "en"]
MediaSend = Literal["base64", "file"]
MediaUrls = Literal["fetch", "pass"]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
LogFormat = Literal["console", "json"]
BotRole = Literal["all", "gateway", "worker"]
ApplicantMode = Literal["none", "ask"]
PokeMode = Literal["line", "model", "off"]
LinkMode = Literal["off", "ask", "auto"]
Level = Annotated[
    LogLevel, BeforeValidator(values.OneOf("DEBUG", "INFO", "WARNING", "ERROR", warn="WARNING"))
]
ByTool = Annotated[dict[str, str], BeforeValidator(values.audiences)]
Mirrors = Annotated[dict[str, str], BeforeValidator(values.mirrors)]
SigningKey = Annotated[SecretStr, AfterValidator(values.ed25519_key)]
History = Annotated[int, BeforeValidator(values.Whole(500, values.MAX_CONTEXT))]


class Settings(BaseSettings):
    """All settings with default and description; docs/settings.md is generated from this."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    llm_base_url: Annotated[
        BaseUrl,
        About(
            "Base URL of an OpenAI-compatible API; it usually ends in `/v1`.",
            "兼容 OpenAI 的接口地址，通常以 `/v1` 结尾。",
            example="https://api.deepseek.com/v1",
            see="models.md",
        ),
    ] = ""
    llm_api_key: Annotated[
        Keys,
        About(
            "API key; leave it empty for a local server. Several keys take turns if one is refused "
            "or busy.",
            "接口密钥，本地模型可留空；写多个时，一个不可用或限流就换下一个。",
        ),
    ] = SecretStr("")
    llm_model: Annotated[
        str,
        About(
            "Name of the model, as the service spells it.",
            "模型名称，按服务商的写法。",
            example="deepseek-v4-flash",
        ),
    ] = ""
    llm_dialect: Annotated[
        str,
        BeforeValidator(values.OneOf("", *DIALECTS)),
        About(
            "API dialect of the model; set it only if a proxy hides both host and model.",
            "模型的接口习惯；只有用中转、地址和模型名都看不出来时才填。",
            unset=Bilingual("detected", "自动识别"),
            see="models.md",
        ),
    ] = ""
    llm_fallbacks: Annotated[
        tuple[Endpoint, ...],
        BeforeValidator(fallbacks),
        About(
            "Models to ask, in order, while the main model does not answer.",
            "备用模型，主模型不可用时依次使用。",
            example='[{"base_url": "https://api.moonshot.cn/v1", "api_key": "sk-second", '
            '"model": "kimi-k2.5"}]',
            see="models.md",
        ),
    ] = ()
    llm_vision_model: Annotated[
        str,
        About(
            "Model that describes pictures if `LLM_MODEL` cannot see; name `LLM_MODEL` itself if "
            "it can.",
            "主模型不会看图时，由它描述图片；主模型能看图而未被识别时，填主模型的名称。",
            see="models.md",
        ),
    ] = ""
    llm_cheap_model: Annotated[
        str,
        About(
            "Cheaper model for background work: summaries, and picking facts to remember.",
            "写摘要、挑选要记住的事等后台工作用的便宜模型。",
            unset=Bilingual("as `LLM_MODEL`", "同 `LLM_MODEL`"),
        ),
    ] = ""
    llm_context: Annotated[
        int,
        BeforeValidator(values.Whole(0, values.MAX_CONTEXT)),
        About(
            "Context window of `LLM_MODEL`; `0` uses the built-in table. Set it for local servers.",
            "模型的上下文长度；`0` 按内置的表。本地模型请按服务端的设置填写。",
            unit=TOKENS,
            see="local-models.md",
        ),
    ] = 0
    llm_first_token: Annotated[
        float,
        BeforeValidator(values.Number(0, 3600)),
        About(
            "How long a model may take to begin its answer; `0` is no limit. Raise it for slow "
            "local models.",
            "模型多久内必须开始回答；`0` 为不限。本地模型较慢时请调大。",
            unit=SECONDS,
        ),
    ] = 60.0
    llm_parallel: Annotated[
        int,
        BeforeValidator(values.Whole(0, 1000)),
        About(
            "Requests the service can answer at once; `1` lets questions go before summaries, `0` "
            "is no limit.",
            "服务同时能处理几个请求；填 `1` 时写摘要会给提问让路，`0` 为不限。",
            unit=REQUESTS,
            see="local-models.md",
        ),
    ] = 0
    llm_prices: Annotated[
        FilePath | None,
        About(
            "File with prices and context windows that override the built-in ones.",
            "价格表，可覆盖内置的价格和上下文长度。",
            see="models.md",
        ),
    ] = None

    onebot_access_token: Annotated[
        SecretStr,
        AfterValidator(tokens.tokens),
        About(
            "Token shared with the OneBot server; optional only on a loopback address or in "
            "forward mode.",
            "与 OneBot 端一致的令牌；只有监听本机地址或正向模式时可以不填。",
            example="10001:first-token,10002:second-token",
            see="several-accounts.md",
        ),
    ] = SecretStr("")
    onebot_mode: Annotated[
        Mode,
        BeforeValidator(values.OneOf("reverse", "forward")),
        About(
            "`reverse`: the OneBot server connects to the bot. `forward`: the bot connects to "
            "`ONEBOT_URL`.",
            "`reverse`：OneBot 端来连机器人（推荐）；`forward`：机器人去连 `ONEBOT_URL`。",
            see="forward-mode.md",
        ),
    ] = "reverse"
    onebot_host: Annotated[
        Host, About("Reverse mode: address to listen on.", "反向模式的监听地址。")
    ] = "0.0.0.0"  # noqa: S104  # the OneBot server is usually another container
    onebot_port: Annotated[
        int,
        BeforeValidator(values.Whole(0, 65535)),
        About(
            "Reverse mode: port to listen on. Any path is accepted.",
            "反向模式的监听端口；路径随意。",
        ),
    ] = 6199
    onebot_url: Annotated[
        str,
        AfterValidator(values.socket_url),
        About(
            "Forward mode: WebSocket address of the OneBot server.",
            "正向模式下 OneBot 端的 WebSocket 地址。",
            example="ws://127.0.0.1:3001",
        ),
    ] = ""

    bot_name: Annotated[
        str,
        About(
            "The bot's name; at the start or end of a message it wakes the bot.",
            "机器人的名字；在消息开头或结尾叫名字会唤醒它。",
        ),
    ] = "FrostAgent"
    bot_aliases: Annotated[
        Names,
        About(
            "Further names that wake the bot.",
            "别名，同样能唤醒它。",
            example="霜降狐,霜降",
        ),
    ] = ()
    bot_persona: Annotated[
        FilePath | None,
        About(
            "Persona: a UTF-8 text file that says who the bot is.",
            "人设：写明机器人是谁的 UTF-8 文本文件。",
            unset=Bilingual(
                "built in: `config/personas/default.md`", "自带的 `config/personas/default.md`"
            ),
            see="personas.md",
        ),
    ] = None
    system_prompt: Annotated[
        str,
        About(
            "Persona as text, instead of `BOT_PERSONA`; set only one of them.",
            "直接写人设文本，代替 `BOT_PERSONA`；二选一。",
            example="You are a helpful fox.",
        ),
    ] = ""
    personas_dir: Annotated[
        FilePath | None,
        About(
            "Folder with your own personas, one file each.",
            "自己的人设文件夹，一个文件一个人设。",
            unit=FOLDER,
            see="personas.md",
        ),
    ] = None
    groups_file: Annotated[
        FilePath | None,
        About(
            "File with what differs in single groups, such as house rules.",
            "各个群不同的设置，比如群规。",
            see="personas.md",
        ),
    ] = None
    bot_language: Annotated[
        Language,
        BeforeValidator(values.OneOf("", "zh", "en")),
        About(
            "Language of prompts, messages to owners, commands in the terminal and startup errors.",
            "提示词、发给主人的话、终端命令和启动报错的语言。",
            unset=Bilingual(
                "prompts: the chat's; owners: Chinese; terminal: the system's",
                "提示词跟随会话；对主人用中文；终端跟随系统",
            ),
            see="in-the-group.md",
        ),
    ] = ""

    bot_owners: Annotated[
        Owners,
        PlainValidator(owners),
        About(
            "Accounts with an owner's rights; `:quiet` after a number stops alarms to that owner.",
            "有主人权限的 QQ 号；号码后加 `:quiet` 表示不给这位主人发告警。",
            example="10001,10002:quiet",
        ),
    ] = Owners()
    bot_groups: Annotated[
        QQNumbers,
        About(
            "Groups the bot listens to.",
            "允许的群号。",
            unit=GROUPS,
            unset=Bilingual("all groups", "所有群"),
        ),
    ] = frozenset()
    bot_users: Annotated[
        QQNumbers,
        About(
            "Users the bot listens to.",
            "允许的 QQ 号。",
            unset=Bilingual("all users", "所有人"),
        ),
    ] = frozenset()
    bot_block: Annotated[
        QQNumbers, About("Users the bot never listens to.", "黑名单，从不听他们的。")
    ] = frozenset()
    bot_new_group: Annotated[
        NewGroup,
        BeforeValidator(values.OneOf(*get_args(NewGroup))),
        About(
            "In a new group: ask the owners, answer at once, send drafts to the owners, or only "
            "read.",
            "到了新群：先问主人、直接回答、回答先给主人看，或只看不说。",
            see="in-the-group.md",
        ),
    ] = "ask"
    bot_accept: Annotated[
        Accept,
        BeforeValidator(values.OneOf("ask", "friends", "none")),
        About(
            "Friend requests and group invites: ask the owners, accept friends at once, or do "
            "nothing.",
            "加好友和拉群的申请：问主人、好友自动通过，或不处理。",
            see="approvals.md",
        ),
    ] = "ask"
    bot_applicants: Annotated[
        ApplicantMode,
        BeforeValidator(values.OneOf(*get_args(ApplicantMode))),
        About(
            "People who ask to join a group: left to its admins, or asked about (`TOOLS_GROUP=1`: "
            "there too).",
            "有人申请入群：留给群管理员，或者来问；设了 `TOOLS_GROUP=1` 也在群里问。",
            see="in-the-group.md",
        ),
    ] = "none"
    bot_robots: Annotated[
        QQNumbers,
        About(
            "Other bots: their messages are read but never answered. QQ's official bots are known.",
            "其他机器人：只看不回，免得互相回复；QQ 官方机器人已自动识别。",
        ),
    ] = frozenset()
    bot_loop: Annotated[
        int,
        BeforeValidator(values.Whole(0, 1000)),
        About(
            "Instant or repeated replies within 3 minutes before a sender is ignored for 10 "
            "minutes; `0` is off.",
            "三分钟内秒回或重复多少次，就当作机器人、十分钟不理并告诉主人；`0` 为不管。",
            unit=REPLIES,
        ),
    ] = 6

    bot_prefixes: Annotated[
        Names,
        About(
            "Prefixes that wake the bot.",
            "消息以这些开头也会唤醒它。",
            example="/ai,！",
        ),
    ] = ()
    bot_at_all: Annotated[
        bool,
        BeforeValidator(values.switch),
        About("`1`: @all wakes the bot too.", "`1`：@全体成员 也会唤醒它。"),
    ] = False
    bot_chance: Annotated[
        float,
        BeforeValidator(values.Number(0, 1)),
        About(
            "Probability of joining in uninvited, at most once in 2 minutes and 20 times a day in "
            "a group.",
            "无人点名时主动插话的概率；每个群两分钟内最多一次，每天最多 20 次。",
        ),
    ] = 0.0
    bot_chime_in: Annotated[
        float,
        BeforeValidator(values.Number(0, 1)),
        About(
            "How readily it joins in after reading along with the cheap model; replaces "
            "`BOT_CHANCE`.",
            "让便宜的模型看着聊天，该说话时主动开口的积极程度；代替 `BOT_CHANCE`。",
            see="in-the-group.md",
        ),
    ] = 0.0
    bot_poke: Annotated[
        PokeMode,
        BeforeValidator(values.OneOf(*get_args(PokeMode))),
        About(
            "Answer to a poke, once a minute: a ready-made line, one by the cheap model, or none.",
            "被戳了怎么回，一分钟最多一次：现成的一句、让便宜的模型想一句、不回。",
            see="in-the-group.md",
        ),
    ] = "line"
    bot_quiet: Annotated[
        Hours,
        About(
            "Quiet hours, in the time zone of `TZ`: only mentions, quotes and private messages are "
            "answered.",
            "安静时段（按 `TZ`）：只回答 @ 它、引用它或私聊它的人。",
            example="23:30-07:30",
            see="in-the-group.md",
        ),
    ] = ()
    bot_quiet_mode: Annotated[
        QuietMode,
        BeforeValidator(values.OneOf("weak", "all")),
        About(
            "`all`: in quiet hours only owners are answered.",
            "`all`：安静时段只回答主人。",
        ),
    ] = "weak"
    bot_debounce: Annotated[
        float,
        BeforeValidator(values.Number(0, 60)),
        About(
            "How long an unfinished line waits for the next one; `0` does not wait.",
            "一句话像没说完时，等下一句多久，连着的几句算一个提问；`0` 为不等。",
            unit=SECONDS,
        ),
    ] = 1.2
    bot_steer: Annotated[
        bool,
        BeforeValidator(values.switch),
        About(
            "`1`: follow-up lines change the answer in progress. `0`: they count as new questions.",
            "`1`：回答时提问者补充的话算同一个问题；`0`：另算一个，排队再答。",
        ),
    ] = True
    bot_scope: Annotated[
        Scope,
        BeforeValidator(values.OneOf("group", "member")),
        About(
            "`group`: one answer at a time in a group. `member`: up to three people at once.",
            "`group`：群里依次回答、轮流来；`member`：最多同时回答三个人。",
        ),
    ] = "group"
    bot_lane: Annotated[
        int,
        BeforeValidator(values.Whole(0, 10_000)),
        About(
            "Questions that may wait in a chat; beyond that the oldest gets only an emoji. `0` is "
            "no limit.",
            "每个会话最多排队多少个提问，超出时最早的只贴表情、不再回答；`0` 为不限。",
            unit=QUESTIONS,
        ),
    ] = 64
    bot_stale: Annotated[
        float,
        BeforeValidator(values.Number(0, 86_400)),
        About(
            "Questions that have waited longer are only read, not answered; `0` answers all.",
            "排队超过多久的提问不再回答，只看；`0` 为总要回答。",
            unit=SECONDS,
        ),
    ] = 120.0

    bot_user_rate: Annotated[
        Often,
        BeforeValidator(values.rate),
        About(
            "Questions of one person in a number of seconds; `0` is no limit, owners are not "
            "counted.",
            "每人在多少秒内最多问几个问题；`0` 为不限，主人不计。",
            see="limits.md",
        ),
    ] = (6, 60.0)
    bot_group_rate: Annotated[
        Often,
        BeforeValidator(values.rate),
        About(
            "Questions of one group in a number of seconds; `0` is no limit, owners are not "
            "counted.",
            "每群在多少秒内最多问几个问题；`0` 为不限，主人不计。",
            see="limits.md",
        ),
    ] = (20, 60.0)
    bot_day_cost_user: Annotated[
        Dollars,
        About(
            "Daily cost of one person; `0` is no limit.",
            "每人每天的花费；`0` 为不限。",
            unit=DOLLARS,
            see="limits.md",
        ),
    ] = 0.0
    bot_day_cost_group: Annotated[
        Dollars,
        About(
            "Daily cost of one group; `0` is no limit.",
            "每群每天的花费；`0` 为不限。",
            unit=DOLLARS,
            see="limits.md",
        ),
    ] = 0.0
    bot_day_cost_all: Annotated[
        Dollars,
        About(
            "Daily cost in total; `0` is no limit.",
            "每天的总花费；`0` 为不限。",
            unit=DOLLARS,
            see="limits.md",
        ),
    ] = 0.0
    bot_day_tokens_user: Annotated[
        Tokens,
        About(
            "Daily tokens of one person; `0` is no limit.",
            "每人每天的用量；`0` 为不限。",
            unit=TOKENS,
            see="limits.md",
        ),
    ] = 0
    bot_day_tokens_group: Annotated[
        Tokens,
        About(
            "Daily tokens of one group; `0` is no limit.",
            "每群每天的用量；`0` 为不限。",
            unit=TOKENS,
            see="limits.md",
        ),
    ] = 0
    bot_day_tokens_all: Annotated[
        Tokens,
        About(
            "Daily tokens in total; `0` is no limit.",
            "每天的总用量；`0` 为不限。",
            unit=TOKENS,
            see="limits.md",
        ),
    ] = 0
    bot_max_steps: Annotated[
        int,
        BeforeValidator(values.Whole(1, 64)),
        About(
            "Model requests with tools for one answer.",
            "单次回答中带工具的模型请求数。",
            unit=REQUESTS,
        ),
    ] = 12
    bot_run_requests: Annotated[
        int,
        BeforeValidator(values.Whole(0, 1000)),
        About(
            "Model requests for one question, with subagents and retries; `0` is no limit.",
            "一个问题总共的模型请求数，含子代理和重试；`0` 为不限。",
            unit=REQUESTS,
        ),
    ] = 24
    bot_run_tokens: Annotated[
        int,
        BeforeValidator(values.Whole(0, 10**9)),
        About(
            "Tokens for one question, with subagents and retries; `0` is no limit.",
            "一个问题总共的 token 数，含子代理和重试；`0` 为不限。",
            unit=TOKENS,
        ),
    ] = 0

    bot_max_sends: Annotated[
        int,
        BeforeValidator(values.Whole(0, 100)),
        About(
            "Interim messages of one question, before its final answer; `0` is no limit.",
            "回答一个问题的过程中最多先发几条消息，最终回答不算；`0` 为不限。",
            unit=MESSAGES,
        ),
    ] = 5
    bot_send_rate: Annotated[
        float,
        BeforeValidator(values.Number(0, 1000)),
        About(
            "Messages a second to one chat after a burst; QQ freezes fast senders. `0` is no "
            "limit.",
            "突发之后每个会话每秒最多发几条；发得太快会被风控，`0` 为不限。",
            unit=MESSAGES,
        ),
    ] = 1.0
    bot_send_burst: Annotated[
        int,
        BeforeValidator(values.Whole(0, 1000)),
        About(
            "Messages to one chat before `BOT_SEND_RATE` applies; 500 times as many to all chats.",
            "每个会话突发几条之后才限速；所有会话合计是它的 500 倍。",
            unit=MESSAGES,
        ),
    ] = 3
    bot_pace: Annotated[
        bool,
        BeforeValidator(values.switch),
        About(
            "`1`: a short answer goes out as up to three messages, at typing speed. `0`: as one.",
            "`1`：短回答按段落分成最多三条，像真人打字一样发；`0`：一次发完。",
        ),
    ] = True
    bot_digest: Annotated[
        float | None,
        BeforeValidator(time_of_day),
        About(
            "When owners get yesterday's report, in the time zone of `TZ`; `0` is never.",
            "每天几点（按 `TZ`）私聊告诉主人昨天的情况；`0` 为不发。",
            see="commands.md",
        ),
    ] = 9 * 3600.0

    bot_recap: Annotated[
        str,
        BeforeValidator(values.clock_time),
        About(
            "When each group gets a recap of its day, in the time zone of `TZ`; the group pays.",
            "每天几点（按 `TZ`）给每个群发一份省流，费用算在群上。",
            example="22:00",
            see="in-the-group.md",
        ),
    ] = ""

    bot_history_tokens: Annotated[
        History,
        About(
            "How much of the conversation each question includes; older parts become a summary.",
            "每次提问带上多少历史对话；更早的会压缩成摘要。",
            unit=TOKENS,
            see="models.md",
        ),
    ] = 12_000
    bot_memory: Annotated[
        bool,
        BeforeValidator(values.switch),
        About(
            "`1`: remembers facts people say about themselves, for 180 days after their last use.",
            "`1`：记住大家说的关于自己的事，180 天不用就忘掉。",
            see="commands.md",
        ),
    ] = True
    bot_reminders: Annotated[
        bool,
        BeforeValidator(values.switch),
        About(
            "`1`: people can have reminders set and tasks scheduled.",
            "`1`：可以让它定提醒、定时做事。",
            see="reminders.md",
        ),
    ] = True
    store_url: Annotated[
        SecretStr,
        AfterValidator(values.database),
        About(
            "Database of conversations; PostgreSQL needs its driver, with Docker "
            "`EXTRAS=postgres`.",
            "对话存在哪个数据库；PostgreSQL 需装驱动（Docker 下填 `EXTRAS=postgres`）。",
            example="postgresql://user:password@127.0.0.1/frostagent",
            see="cluster.md",
        ),
    ] = SecretStr(DEFAULT_STORE)
    store_keep_days: Annotated[
        int,
        BeforeValidator(values.Whole(0, 36_500)),
        About(
            "How long conversations are kept; `0` is for ever.",
            "对话保留多久；`0` 为一直保留。",
            unit=DAYS,
        ),
    ] = 90
    store_keep_messages: Annotated[
        int,
        BeforeValidator(values.Whole(0, 10**12)),
        About(
            "How many messages are kept, the oldest go first; `0` is no limit.",
            "最多保留多少条消息，先删最早的；`0` 为不限。",
            unit=MESSAGES,
        ),
    ] = 1_000_000

    stt_base_url: Annotated[
        BaseUrl,
        About(
            "Speech-to-text service with OpenAI's `/audio/transcriptions`; without it voice is not "
            "heard.",
            "语音转文字服务（OpenAI 的 `/audio/transcriptions`）；不填则听不到语音。",
            see="models.md",
        ),
    ] = ""
    stt_api_key: Annotated[
        Keys,
        About(
            "Key of the speech-to-text service; `LLM_API_KEY` is never sent there.",
            "语音转文字服务的密钥；绝不会把 `LLM_API_KEY` 发过去。",
        ),
    ] = SecretStr("")
    stt_model: Annotated[str, About("Speech-to-text model.", "语音转文字模型的名称。")] = (
        "whisper-1"
    )

    coder_base_url: Annotated[
        BaseUrl,
        About(
            "Base URL of the Coder's model.",
            "编程子代理（Coder）的接口地址。",
            unset=Bilingual("the main model's", "与主模型相同"),
            see="subagents.md",
        ),
    ] = ""
    coder_api_key: Annotated[
        Keys,
        About(
            "Key of the Coder's model; `LLM_API_KEY` is never sent to another base URL.",
            "Coder 的密钥；`LLM_API_KEY` 绝不会发到别的地址。",
            unset=Bilingual("the main model's", "与主模型相同"),
        ),
    ] = SecretStr("")
    coder_model: Annotated[
        str,
        About(
            "Name of the Coder's model.",
            "Coder 的模型名称。",
            unset=Bilingual("the main model", "主模型"),
        ),
    ] = ""
    subagents_file: Annotated[
        FilePath | None,
        About(
            "File with your own subagents: prompt, model, tools and budget of each.",
            "自定义子代理的文件：提示词、模型、工具和预算。",
            see="subagents.md",
        ),
    ] = None
    subagent_keys: dict[str, SecretStr] = Field(default_factory=dict, exclude=True)
    mcp_file: Annotated[
        FilePath | None,
        About(
            "JSON file with MCP servers, as other programs use; each call needs an owner's "
            "approval by default.",
            "MCP 服务器的 JSON 文件，格式与其他软件相同；默认每次调用都要主人同意。",
            see="mcp.md",
        ),
    ] = None
    mcp_keys: dict[str, SecretStr] = Field(default_factory=dict, exclude=True)
    mcp_secrets: tuple[SecretStr, ...] = Field(default=(), exclude=True)

    tools_deny: Annotated[
        Names,
        About(
            "Tools that are never run.",
            "禁用的工具。",
            example="get_game_version",
            see="approvals.md",
        ),
    ] = ()
    tools_approve: Annotated[
        Names,
        About(
            "Tools whose every call needs an owner's approval.",
            "每次调用都要主人同意的工具。",
            example="use_subagent",
            see="approvals.md",
        ),
    ] = ()
    tools_audience: Annotated[
        ByTool,
        About(
            "Who may use a tool: `everyone`, `group_admin` or `owner`.",
            "哪个工具给谁用：`everyone` 所有人、`group_admin` 群管理员、`owner` 主人。",
            unset=Bilingual("as each tool says", "各工具自己的声明"),
            example='{"use_subagent": "group_admin"}',
            see="tools.md",
        ),
    ] = Field(default_factory=dict)
    tools_group: Annotated[
        bool,
        BeforeValidator(values.switch),
        About(
            "`1`: group admins may ask the bot to mute, recall, pin or rename; an owner approves "
            "each.",
            "`1`：群管理员可以让它禁言、撤回、设精华、改群名片，每次都要主人同意。",
            see="safety.md",
        ),
    ] = False
    tools_max_calls: Annotated[
        int,
        BeforeValidator(values.Whole(1, 1000)),
        About(
            "Tool calls run in one answer of the model; further calls are refused.",
            "模型一次回答中最多执行的工具调用数，多余的不执行。",
            unit=CALLS,
        ),
    ] = 16
    tools_dir: Annotated[
        FilePath | None,
        About(
            "Folder with your own tools, one Python file each; with Docker `my-tools`.",
            "自己编写的工具所在的目录，一个 Python 文件一个工具；Docker 下填 `my-tools`。",
            unit=FOLDER,
            see="tools.md",
        ),
    ] = None
    tools_mirrors: Annotated[
        Mirrors,
        About(
            "Mirrors for web sources that are slow or blocked: host and base URL.",
            "数据源镜像，用于访问慢或打不开的数据源：域名对应镜像地址。",
            example='{"api.open-meteo.com": "https://weather-mirror.example.net"}',
        ),
    ] = Field(default_factory=dict)
    tools_contact: Annotated[
        str,
        AfterValidator(values.contact),
        About(
            "E-mail or page sent to web sources in the User-Agent; enables MET Norway.",
            "联系方式（邮箱或网页），会随请求发给数据源；填写后启用挪威气象局。",
            example="bot@example.com",
            see="weather.md",
        ),
    ] = ""
    words_file: Annotated[
        FilePath | None,
        About(
            "Word list: questions with them get no answer, and sentences with them are not sent.",
            "词表，每行一个：含有这些词的问题不回答，含有这些词的句子不说。",
            see="safety.md",
        ),
    ] = None
    games_file: Annotated[
        FilePath | None,
        About(
            "File with further games whose versions can be looked up.",
            "自定义的游戏版本数据源。",
            see="games.md",
        ),
    ] = None
    qweather_host: Annotated[
        str,
        AfterValidator(values.api_host),
        About(
            "Weather: QWeather API host of your account.",
            "天气：和风天气账号专属的 API Host。",
            example="abc1234xyz.def.qweatherapi.com",
            see="weather.md",
        ),
    ] = ""
    qweather_key: Annotated[
        Secret,
        About(
            "QWeather: API key, unless you use a JWT.",
            "和风天气的 API KEY（不用 JWT 时）。",
            see="weather.md",
        ),
    ] = SecretStr("")
    qweather_jwt_project: Annotated[
        str,
        About("QWeather JWT: project ID.", "和风天气 JWT：项目 ID。"),
    ] = ""
    qweather_jwt_key_id: Annotated[
        str,
        About("QWeather JWT: credential ID.", "和风天气 JWT：凭据 ID。"),
    ] = ""
    qweather_jwt_private_key: Annotated[
        SigningKey,
        About(
            "QWeather JWT: the line between BEGIN and END of the Ed25519 private key.",
            "和风天气 JWT：Ed25519 私钥 BEGIN 和 END 之间的那一行。",
        ),
    ] = SecretStr("")
    amap_key: Annotated[
        Secret,
        About(
            "Weather: AMap key for “Web服务”; mainland China only.",
            "天气：高德的“Web服务”密钥，仅限中国大陆。",
            see="weather.md",
        ),
    ] = SecretStr("")

    search_url: Annotated[
        BaseUrl,
        About(
            "Web search: address of a SearXNG, which needs no key, or of another service or proxy.",
            "联网搜索：SearXNG 的地址（不用密钥），或其他服务、中转的地址。",
            example="http://searxng:8080",
            see="web.md",
        ),
    ] = ""
    search_key: Annotated[
        Secret,
        About(
            "Web search: key of Tavily, Bocha, Brave Search or Zhipu; turns search and reading on.",
            "联网搜索：Tavily、博查、Brave 或智谱的密钥；填了就能搜索和读网页。",
            see="web.md",
        ),
    ] = SecretStr("")
    search_kind: Annotated[
        str,
        BeforeValidator(values.OneOf("", *SEARCH_KINDS)),
        About(
            "Whose the search key or address is; `ddgs` is DuckDuckGo without a key, `none` reads "
            "pages alone.",
            "搜索密钥或地址是哪家的。`ddgs` 是 DuckDuckGo，不用密钥；"
            "`none` 为只读大家发的网页、不搜索。",
            unset=Bilingual("seen from the address or key", "从地址或密钥看出来"),
            see="web.md",
        ),
    ] = ""
    search_price: Annotated[
        Dollars,
        About(
            "What 1,000 searches cost; each is counted to who asked. `0` counts nothing.",
            "一千次搜索的价格，每次都记在提问的人头上；`0` 为不计。",
            unit=DOLLARS,
            see="web.md",
        ),
    ] = 0.0
    bot_links: Annotated[
        LinkMode,
        BeforeValidator(values.OneOf(*get_args(LinkMode))),
        About(
            "Links of members: `ask` sums up a quoted one if asked; `auto` also those to "
            "`BOT_LINKS_SITES`, unasked.",
            "群友发的链接：`ask` 为引用它提问时概括，`auto` 还主动概括 `BOT_LINKS_SITES` 里的。",
            see="web.md",
        ),
    ] = "off"
    bot_links_sites: Annotated[
        Names,
        BeforeValidator(values.sites),
        About(
            "With `BOT_LINKS=auto`: hosts whose links are summed up unasked, with subdomains.",
            "`BOT_LINKS=auto` 时主动概括哪些网站的链接，含子域名。",
            example="bilibili.com,b23.tv,github.com",
            see="web.md",
        ),
    ] = ()
    bot_links_day: Annotated[
        int,
        BeforeValidator(values.Whole(1, 10_000)),
        About(
            "With `BOT_LINKS=auto`: links summed up unasked in a day, in all groups together.",
            "`BOT_LINKS=auto` 时一天最多主动概括多少个链接，所有群合计。",
            unit=LINKS,
            see="web.md",
        ),
    ] = 100

    media_dir: Annotated[
        FilePath,
        About(
            "The only folder the bot sends files from.",
            "只会发送此目录内的文件。",
            unit=FOLDER,
        ),
    ] = Path("data/media")
    media_send: Annotated[
        MediaSend,
        BeforeValidator(values.OneOf("base64", "file")),
        About(
            "`base64`: files travel in the message. `file`: the OneBot server reads the same path.",
            "`base64`：文件随消息发送；`file`：OneBot 端读取同一路径，需两边目录一致。",
        ),
    ] = "base64"
    media_urls: Annotated[
        MediaUrls,
        BeforeValidator(values.OneOf("fetch", "pass")),
        About(
            "`fetch`: the bot downloads URLs from public hosts. `pass`: the OneBot server does, "
            "unchecked.",
            "`fetch`：机器人自己下载（仅公网）；`pass`：交给 OneBot 端，可能访问到内网。",
            see="safety.md",
        ),
    ] = "fetch"
    media_url: Annotated[
        str,
        AfterValidator(values.media_url),
        About(
            "How the OneBot server reaches `/media` of `WEB_PORT`, to fetch files above 6 MB.",
            "OneBot 端怎样访问 `WEB_PORT` 上的 `/media`，超过约 6 MB 的文件由它来取。",
            example="http://bot:8080/media",
            see="cluster.md",
        ),
    ] = ""

    web_host: Annotated[
        Host,
        About(
            "Address of `/healthz`, `/readyz` and `/metrics`, which have no password: keep it "
            "private.",
            "`/healthz`、`/readyz`、`/metrics` 的监听地址；没有密码，请勿暴露到公网。",
        ),
    ] = "127.0.0.1"
    web_port: Annotated[
        int,
        BeforeValidator(values.Whole(0, 65535)),
        About(
            "Port of `/healthz`, `/readyz` and `/metrics`; `0` turns them off.",
            "`/healthz`、`/readyz`、`/metrics` 的端口；`0` 为关闭。",
        ),
    ] = 8080
    console_port: Annotated[
        int,
        BeforeValidator(values.Whole(0, 65535)),
        About(
            "Port of the console; without it, or without a token, the console is off.",
            "控制台的端口；不设端口或没有令牌就不开。",
            unset=Bilingual("off", "不开"),
            example="8090",
            see="console.md",
        ),
    ] = 0
    console_token: Annotated[
        SecretStr,
        AfterValidator(tokens.console_token),
        About(
            "Token to log in to the console; `setup` makes one.",
            "登录控制台的令牌，`setup` 会生成一个。",
        ),
    ] = SecretStr("")
    console_totp: Annotated[
        SecretStr,
        AfterValidator(tokens.console_totp),
        About(
            "Secret of an authenticator app, for a code at login and approval; "
            "`console --totp` makes one.",
            "验证器的密钥，登录和批准时再要一个验证码；由 `console --totp` 生成。",
            see="console.md",
        ),
    ] = SecretStr("")
    console_host: Annotated[
        Host, About("Address the console listens on.", "控制台的监听地址。")
    ] = "127.0.0.1"
    console_origin: Annotated[
        str,
        AfterValidator(values.origin),
        About(
            "Behind a reverse proxy: the address that browsers use.",
            "用反向代理时，浏览器访问的地址。",
            example="https://bot.example.com",
            see="console.md",
        ),
    ] = ""
    console_proxy: Annotated[
        str,
        AfterValidator(values.proxy_address),
        About(
            "Address of the reverse proxy, whose `X-Forwarded-For` is then trusted.",
            "反向代理的地址，采信它写的 `X-Forwarded-For`。",
            example="127.0.0.1",
            see="console.md",
        ),
    ] = ""

    broker_url: Annotated[
        SecretStr,
        AfterValidator(values.broker_url),
        About(
            "RabbitMQ that connects gateways and workers; without it everything is one process.",
            "连接网关和 worker 的 RabbitMQ；不设就是单进程，绝大多数人用这个就够了。",
            example="amqp://user:password@host/",
            see="cluster.md",
        ),
    ] = SecretStr("")
    bot_role: Annotated[
        BotRole,
        BeforeValidator(values.OneOf(*get_args(BotRole))),
        About(
            "Role of this process; workers need PostgreSQL.",
            "本进程的角色：全部、只当网关、只当 worker；worker 要用 PostgreSQL。",
            see="cluster.md",
        ),
    ] = "all"
    broker_partitions: Annotated[
        int,
        BeforeValidator(values.Whole(1, 64)),
        About(
            "Parts the accounts are divided into, one worker each; the same everywhere, never "
            "changed.",
            "账号分成几份，每份由一个 worker 负责；各处一致，定了就别改。",
            see="cluster.md",
        ),
    ] = 1

    log_level: Annotated[
        Level, About("The least important messages that are logged.", "日志级别。")
    ] = "INFO"
    log_format: Annotated[
        LogFormat,
        BeforeValidator(values.OneOf("console", "json")),
        About(
            "`console`: lines for people. `json`: one JSON object a line.",
            "`console`：给人看；`json`：每行一个 JSON 对象，给程序读。",
        ),
    ] = "console"
    log_content: Annotated[
        bool,
        BeforeValidator(values.switch),
        About(
            "`1`: logs questions and final answers; if you do, inform the people concerned.",
            "`1`：把提问与最终回答写入日志，请先告知群友。",
        ),
    ] = False
    log_runs: Annotated[
        FilePath | None,
        About(
            "File for model requests and tool calls as JSON lines; it grows, so rotate it.",
            "运行记录文件（JSONL），记录每次模型请求与工具调用；会一直变大，请用 logrotate。",
            example="data/runs.jsonl",
            see="tools.md",
        ),
    ] = None
    tz: Annotated[
        str,
        AfterValidator(zone),
        About(
            "Time zone of reminders, daily limits, digest, quiet hours and log.",
            "提醒、每日限额、日报、安静时段和日志按哪个时区。",
            unset=Bilingual(
                "the machine's; with Docker `Asia/Shanghai`",
                "跟随系统；Docker 下为 `Asia/Shanghai`",
            ),
            example="Asia/Shanghai",
        ),
    ] = ""

    @classmethod
    def settings_customise_sources(
        cls, *_: Any, **by_name: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use only what is passed in: pydantic-settings' own sources know neither line numbers nor
        unknown names nor the typed names, which `load_settings` reports.
        """
        return (by_name["init_settings"],)

    @property
    def access_tokens(self) -> tokens.AccessTokens:
        """The tokens between OneBot servers and the bot."""
        return tokens.read_tokens(self.onebot_access_token.get_secret_value())

    @property
    def has_broker(self) -> bool:
        """Whether sockets and journal may be in different processes."""
        return bool(self.broker_url.get_secret_value())

    @property
    def has_web(self) -> bool:
        """Whether searching, or reading pages alone, is turned on."""
        has_account = bool(self.search_url or self.search_key.get_secret_value())
        return has_account or self.search_kind in WITHOUT_ACCOUNT

    @property
    def main_model(self) -> Endpoint:
        """The model that answers; without a base URL if none is configured."""
        return Endpoint(
            self.llm_base_url, self.llm_api_key, self.llm_model, self.llm_dialect, self.llm_context
        )

    @property
    def main_models(self) -> tuple[Endpoint, ...]:
        """The models for answers, in order: the main model, then the fallbacks."""
        return in_order(self.main_model, *self.llm_fallbacks)

    @property
    def vision_models(self) -> tuple[Endpoint, ...]:
        """The models for requests with images, in order; empty if they are the usual ones."""
        if self.llm_vision_model in {"", self.llm_model}:
            return ()
        seeing = replace(self.main_model, model=self.llm_vision_model, context=0)
        return in_order(seeing, *self.main_models)

    def models_named(self, model: str) -> tuple[Endpoint, ...]:
        """The endpoints for this model, in order."""
        wanted = replace(self.main_model, model=model)
        wanted = wanted if model == self.llm_model else replace(wanted, context=0)
        return in_order(wanted, *self.main_models)

    @property
    def cheap_models(self) -> tuple[Endpoint, ...]:
        """The models for background work, in order; the main models if none is named."""
        if self.llm_cheap_model in {"", self.llm_model}:
            return self.main_models
        return self.models_named(self.llm_cheap_model)

    @property
    def coder_models(self) -> tuple[Endpoint, ...]:
        """The models for the Coder, in order."""
        return in_order(self.coder_endpoint, *self.main_models)

    @property
    def coder_endpoint(self) -> Endpoint:
        """The Coder's model, by default the main one. Key and dialect keep to their base URL."""
        elsewhere = self.coder_base_url not in {"", self.llm_base_url}
        key = (
            self.coder_api_key
            if elsewhere or self.coder_api_key.get_secret_value()
            else self.llm_api_key
        )
        dialect = "" if elsewhere else self.llm_dialect
        model = self.coder_model or self.llm_model
        context = self.llm_context if not elsewhere and model == self.llm_model else 0
        return Endpoint(self.coder_base_url or self.llm_base_url, key, model, dialect, context)


SUBJECTS: Mapping[str, Bilingual] = {
    "llm_base_url": Bilingual("The model", "大模型"),
    "onebot_access_token": Bilingual("The connection to QQ", "连接 QQ"),
    "bot_name": Bilingual("Who the bot is", "它是谁"),
    "bot_owners": Bilingual("Who it listens to", "听谁的"),
    "bot_prefixes": Bilingual("When it answers", "什么时候回答"),
    "bot_user_rate": Bilingual("Limits and cost", "限额与花费"),
    "bot_max_sends": Bilingual("How it writes", "怎样发消息"),
    "bot_history_tokens": Bilingual("Memory and storage", "记忆与存储"),
    "stt_base_url": Bilingual("Voice messages", "语音消息"),
    "coder_base_url": Bilingual("Subagents and MCP servers", "子代理与 MCP"),
    "tools_deny": Bilingual("Tools", "工具"),
    "search_url": Bilingual("The web", "联网"),
    "media_dir": Bilingual("Pictures, voice and files", "图片、语音与文件"),
    "web_host": Bilingual("Health, metrics and console", "运行状态与控制台"),
    "broker_url": Bilingual("More than one machine", "多台机器"),
    "log_level": Bilingual("Log and time zone", "日志与时区"),
}
"""The first field of each subject; those after it belong to the same one."""

KNOWN = tuple(name.upper() for name, field in Settings.model_fields.items() if not field.exclude)
"""Every variable, in the order of the fields. Not included: `subagent_keys` and `mcp_keys`, the
variables named in SUBAGENTS_FILE and MCP_FILE, and `mcp_secrets`, the secrets in MCP_FILE.
"""


def read_persona(settings: Settings) -> PersonaFile:
    """The default persona: SYSTEM_PROMPT, else the file BOT_PERSONA, else the built-in one. Raises
    ConfigError for the file.
    """
    if settings.system_prompt:
        return PersonaFile(key="", head=PersonaHead(), prompt=settings.system_prompt)
    file = find_persona(settings.bot_persona or DEFAULT_PERSONA)
    shown = values.shown_path(file)
    fix = Bilingual(
        "Name a text file that says who the bot is, as config/personas/default.md does",
        "写一个说明机器人是谁的文本文件，可以参照 config/personas/default.md",
    )
    try:
        text = file.read_text("utf-8-sig").strip()
    except OSError as error:
        why = values.why_unreadable(error)
        what = Bilingual(f"{shown} cannot be read {why}", f"{shown} 读不了{why.zh}")
        raise ConfigError(Problem("BOT_PERSONA", what, fix)) from None
    except UnicodeDecodeError:
        raise ConfigError(
            Problem(
                "BOT_PERSONA",
                Bilingual(f"{shown} is not UTF-8 text", f"{shown} 不是 UTF-8 文本"),
                Bilingual("Save it again as UTF-8", "重新存成 UTF-8"),
            )
        ) from None
    if not text:
        raise ConfigError(
            Problem("BOT_PERSONA", Bilingual(f"{shown} is empty", f"{shown} 是空的"), fix)
        )
    return read_persona_file(file, setting="BOT_PERSONA")
