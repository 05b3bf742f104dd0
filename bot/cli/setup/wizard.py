"""`frostagent setup`: asks for settings, tests the model, and writes `.env` and NapCat's
settings.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import assert_never
from urllib.parse import urlsplit

from bot.cli.checks import Check, Outcome
from bot.cli.doctor.models import with_version
from bot.cli.layout import joined
from bot.cli.setup.answers import (
    ACCOUNT,
    MODEL,
    ONEBOT,
    TOKENS,
    ListModels,
    Terminal,
    ask_character,
    ask_console,
    ask_docker,
    ask_model,
    ask_part,
    ask_people,
    ask_which,
    check_answers,
    known_answers,
    with_tokens,
)
from bot.cli.setup.files import (
    BOT_URL,
    NewFile,
    ServerLink,
    account_in,
    fill_env,
    link_of,
    read_text,
    tokens_for,
    write_files,
    write_onebot,
)
from bot.core.language import CATALOGUE, Bilingual, Phrase
from config import sources, values
from config.endpoints import Endpoint
from config.secrets import proxy_secrets
from config.settings import Settings
from frostagent.text.masking import Mask
from frostagent.types.errors import ConfigError, Problem

ENV = Path(".env")
NAPCAT = Path("napcat", "config")
COMPOSE = Path("docker-compose.yml")

WITH_DOCKER = Phrase(
    """\
下一步（用 Docker）：
  1. docker compose up -d            启动机器人和 NapCat
  2. docker compose logs -f napcat   用机器人账号扫码
{mention}
""",
    """\
Next, with Docker:
  1. docker compose up -d            starts the bot and NapCat
  2. docker compose logs -f napcat   scan the QR code with the bot's account
{mention}
""",
)
WITHOUT_DOCKER = Phrase(
    """\
下一步（不用 Docker）：
  1. 在这个目录里启动机器人：
       {run}
  2. 在 NapCat 的网页界面：网络配置 → 新建 → {kind}（LLBot 里是 {llbot}），填上并启用：
{fields}
{mention}
  没有反应时：
       {doctor}
{console}""",
    """\
Next, without Docker:
  1. Start the bot, in this folder:
       {run}
  2. In NapCat's WebUI: Network → New → {kind} ({llbot} in LLBot). Fill it in and enable it:
{fields}
{mention}
  If nothing happens:
       {doctor}
{console}""",
)
CLIENT = Phrase("Websocket 客户端", "Websocket client")
SERVER = Phrase("Websocket 服务器", "Websocket server")
URL_FIELD = Phrase("       地址       {value}", "       URL      {value}")
PORT_FIELD = Phrase("       端口       {value}", "       Port     {value}")
TOKEN_FIELD = Phrase("       令牌       {value}", "       Token    {value}")
FORMAT_FIELD = Phrase("       消息格式   array", "       Format   array")
MENTION = Phrase("  3. 在群里 @ 机器人", "  3. Mention the bot in a group")
MENTION_AS_OWNER = Phrase(
    "  3. 用主人的账号在群里 @ 机器人。别人先 @ 的话，它会私聊问主人，主人回复“上线”",
    "  3. Mention the bot in a group from an owner's account. If others do so first, it asks the\n"
    "     owners in private: reply “live”",
)
ELSEWHERE = Phrase(
    "     NapCat 在容器里或别的电脑上时，把 127.0.0.1 换成这台电脑的地址",
    "     If NapCat runs in a container or on another computer, write this computer's address in\n"
    "     place of 127.0.0.1",
)
CONSOLE = Phrase(
    "  控制台（显示一个登录链接）：\n       {command}\n",
    "  The console (prints a link that logs in):\n       {command}\n",
)
NEAR = Phrase(
    "模型在本机：容器里的 127.0.0.1 是容器自己，用 Docker 时请先在 .env 里改成\n"
    "  LLM_BASE_URL={base_url}",
    "The model runs on this computer. In a container 127.0.0.1 is the container itself: with\n"
    "Docker, write into .env\n"
    "  LLM_BASE_URL={base_url}",
)
UNTRIED = Phrase(
    "没有写入任何文件。加 --no-test 可不经测试直接写入",
    "Nothing was written. Add --no-test to write without a test.",
)
DIFFERS = Phrase(
    "注意：{file} 里的令牌和 .env 不同，而这个账号用的是那个文件：\n"
    "请在 NapCat 网页界面（网络配置）里改令牌，或删掉它",
    "Note: the token in {file} is not the one in .env, and NapCat reads that file for this\n"
    "account. Change the token in NapCat's WebUI (Network), or delete the file.",
)
TRYING = Phrase("正在测试模型 {model}……", "Trying {model} ...")
V1_ADDED = Phrase("  地址补上了 /v1：{url}", "  added the missing /v1: {url}")
ANSWERS = Phrase("  正常，{said}", "  ok, {said}")
NO_ANSWER = Phrase("  没有回答：{said}\n  {fix}。", "  no answer: {said}\n  {fix}.")
MAY_OVERWRITE = Phrase("覆盖 {files}？", "Overwrite {files}?")
NOTHING_WRITTEN = Phrase("没有写入任何文件。", "Nothing was written.")
WRITTEN = Phrase("已写入 {files}", "Wrote {files}")
UNCHANGED = Phrase("没有变化", "Nothing has changed")
EXISTS = Phrase("已经有了", "exists already")
USE_FORCE = Phrase("加 --force 覆盖它", "Add --force to overwrite it")
EMPTY = Phrase("是空的", "is empty")
WRITE_AS = Phrase("写成 {example}", "Write it as {example}")
CATALOGUE.register(__name__, globals())

EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104  # ONEBOT_HOST may be one of them
FROM_A_CONTAINER = "host.docker.internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupOptions:
    """The options of `setup`: answers by their names in `.env`, and how to proceed."""

    typed: Mapping[str, str] = field(default_factory=dict)
    napcat_url: str = BOT_URL
    docker: bool | None = None  # whether it will run in Docker; None: ask, or describe both
    force: bool = False
    test: bool = True
    interactive: bool = True


class Wizard:
    """One setup in one folder. Nothing is written before everything is known, tested and agreed."""

    def __init__(
        self,
        *,
        folder: Path,
        environ: Mapping[str, str],
        terminal: Terminal,
        check_endpoint: Callable[[Endpoint], Check],
        list_models: ListModels,
        make_token: Callable[[], str],
    ) -> None:
        """Everything is read from and written to `folder`."""
        self._folder = folder
        self._environ = environ
        self._terminal = terminal
        self._check_endpoint = check_endpoint
        self._list_models = list_models
        self._make_token = make_token
        self._mask = Mask(proxy_secrets(environ))

    def run(self, wishes: SetupOptions) -> bool:
        """Whether everything was written. Raises ConfigError for problems, typer.Abort if the
        person leaves.
        """
        _check_url(wishes.napcat_url)
        lines = sources.read_env_file(self._folder / ENV)
        made, hidden = sources.read_made_file(self._folder / ENV)
        answers = known_answers(wishes.typed, self._environ, (*made, *lines))
        if not wishes.interactive:
            answers |= self._of_another_service(answers, wishes, lines)
        if wishes.interactive:
            answers = self._ask(answers, test=wishes.test)
        elif wishes.test:
            answers, check = self._try(answers)
            if check.outcome is not Outcome.OK:
                self._terminal.tell(UNTRIED.fill())
                return False
        docker = self._will_use_docker(wishes)
        if wishes.interactive and not docker:
            answers = ask_console(self._terminal, answers)
        complete = with_tokens(answers, self._make_token)
        settings = check_answers(complete)
        # This account may not read what init made: a new token would differ from the OneBot
        # server's.
        answers = {**dict.fromkeys(TOKENS, ""), **answers} if hidden else complete
        answers["LLM_BASE_URL"] = settings.llm_base_url
        account = account_in(answers.get(ACCOUNT, ""))
        link = (
            link_of(settings, bot_url=wishes.napcat_url, account=account)
            if answers[ONEBOT]
            else None
        )
        for_container = link if docker is not False else None
        files = [*self._env_file(answers), *self._onebot_file(for_container)]
        if not self._may_replace(files, wishes):
            return False
        write_files(files)
        self._report(files, for_container)
        if docker is not False and (near := _near(settings)):
            self._terminal.tell(NEAR.fill(base_url=near))
        ways = [WITH_DOCKER.fill(mention=_mention(settings))] if docker is not False else []
        ways += [self._by_hand(settings, answers, wishes)] if not docker else []
        self._terminal.tell(joined(ways, "").each(str.rstrip))
        return True

    def _will_use_docker(self, wishes: SetupOptions) -> bool | None:
        """Whether the bot will run in Docker; None if that is undecided."""
        if wishes.docker is not None:
            return wishes.docker
        if not (self._folder / COMPOSE).exists():
            return False
        if not wishes.interactive:
            return None
        likely = shutil.which("docker", path=self._environ.get("PATH", "")) is not None
        return ask_docker(self._terminal, likely=likely)

    def _by_hand(
        self, settings: Settings, answers: Mapping[str, str], wishes: SetupOptions
    ) -> Bilingual:
        """The next steps without Docker. The token is shown to a person at the terminal; output
        that a script may log only names the file that has it.
        """
        url = _own_url(settings) if wishes.napcat_url == BOT_URL else wishes.napcat_url
        link = link_of(settings, bot_url=url, account=account_in(answers.get(ACCOUNT, "")))
        stands = f"{ONEBOT} ({ENV if answers[ONEBOT] else sources.MADE})"
        shown = link.token if wishes.interactive and answers[ONEBOT] else stands
        match link.mode:
            case "reverse":
                kind, llbot = CLIENT, "ws-reverse"
                place = URL_FIELD.fill(value=link.url)
            case "forward":
                kind, llbot = SERVER, "ws"
                place = PORT_FIELD.fill(value=link.place[1])
            case _:
                assert_never(link.mode)
        fields = [place, TOKEN_FIELD.fill(value=shown), FORMAT_FIELD.fill()]
        if link.url == _own_url(settings) and settings.onebot_host in EVERYWHERE:
            fields.append(ELSEWHERE.fill())
        return WITHOUT_DOCKER.fill(
            run=self._command("run"),
            doctor=self._command("doctor"),
            kind=kind,
            llbot=llbot,
            fields=joined(fields),
            mention=_mention(settings),
            console=CONSOLE.fill(command=self._command("console")) if settings.console_port else "",
        )

    def _command(self, word: str) -> str:
        """How to type one of our commands in this folder: with make in a checkout."""
        path = self._environ.get("PATH", "")
        if (self._folder / "Makefile").exists() and shutil.which("make", path=path):
            return "make run" if word == "run" else f"make run ARGS={word}"
        if shutil.which("frostagent", path=path):
            return f"frostagent {word}"
        # An environment that is not activated.
        beside = shutil.which("frostagent", path=str(Path(sys.executable).parent))
        return f"{beside or f'{sys.executable} -m bot'} {word}"

    def _of_another_service(
        self, answers: Mapping[str, str], wishes: SetupOptions, lines: Iterable[sources.EnvLine]
    ) -> dict[str, str]:
        """Empties the earlier key and model if the base URL has changed: a key must not go to
        another service.
        """
        before = known_answers({}, {}, lines)
        if before["LLM_BASE_URL"] in {"", answers["LLM_BASE_URL"]}:
            return {}
        typed = {
            name
            for name in MODEL
            if wishes.typed.get(name, "").strip() or self._environ.get(name, "").strip()
        }
        return dict.fromkeys({"LLM_API_KEY", "LLM_MODEL"} - typed, "")

    # --- asking -----------------------------------------------------------------------------------

    def _ask(self, answers: dict[str, str], *, test: bool) -> dict[str, str]:
        list_models: ListModels = self._list_models if test else lambda _: ()
        answers = ask_model(self._terminal, answers, list_models)
        while test:
            answers, check = self._try(answers)
            is_well = check.outcome is Outcome.OK
            if is_well or not (name := ask_which(self._terminal, check.setting)):
                break
            answers = ask_part(self._terminal, answers, name, list_models)
        return ask_people(self._terminal, ask_character(self._terminal, answers))

    def _try(self, answers: dict[str, str]) -> tuple[dict[str, str], Check]:
        """Test the model and report the result. Returns the answers, with /v1 appended to the base
        URL if it was missing, and the check.
        """
        endpoint = check_answers(with_tokens(answers, self._make_token)).main_model
        self._terminal.tell(TRYING.fill(model=endpoint.model))
        check = self._check_endpoint(endpoint)
        longer = "" if _is_a_service(check) else with_version(endpoint.base_url)
        if longer and _is_a_service(
            second := self._check_endpoint(replace(endpoint, base_url=longer))
        ):
            self._terminal.tell(V1_ADDED.fill(url=longer))
            answers, check = {**answers, "LLM_BASE_URL": longer}, second
        if check.outcome is Outcome.OK:
            self._terminal.tell(ANSWERS.fill(said=check.said))
        else:
            said = check.said.each(self._mask)
            self._terminal.tell(NO_ANSWER.fill(said=said, fix=check.fix))
        return answers, check

    # --- what is to be written --------------------------------------------------------------------

    def _env_file(self, answers: Mapping[str, str]) -> Iterable[NewFile]:
        path = self._folder / ENV
        old = read_text(path)
        text = fill_env(sources.read_example() if old is None else old, answers)
        if text != old:
            yield NewFile(path, text)

    def _onebot_file(self, link: ServerLink | None) -> Iterable[NewFile]:
        path = self._folder / NAPCAT / "onebot11.json"
        if link is not None and link.accepted.isdisjoint(tokens_for(read_text(path) or "", link)):
            yield NewFile(path, write_onebot(link))

    def _may_replace(self, files: Iterable[NewFile], wishes: SetupOptions) -> bool:
        there = [self._shown(file) for file in files if file.path.exists()]
        if not there or wishes.force:
            return True
        if wishes.interactive:
            agreed = self._terminal.confirm(MAY_OVERWRITE.fill(files=", ".join(there)))
            if not agreed:
                self._terminal.tell(NOTHING_WRITTEN.fill())
            return agreed
        raise ConfigError(*(Problem(name, EXISTS.fill(), USE_FORCE.fill()) for name in there))

    def _report(self, files: Iterable[NewFile], link: ServerLink | None) -> None:
        names = [self._shown(file) for file in files]
        self._terminal.tell(WRITTEN.fill(files=", ".join(names)) if names else UNCHANGED.fill())
        for path in sorted((self._folder / NAPCAT).glob("onebot11_*.json")):
            if link is not None and tokens_for(read_text(path) or "", link) - link.accepted:
                self._terminal.tell(DIFFERS.fill(file=path.relative_to(self._folder)))

    def _shown(self, file: NewFile) -> str:
        return str(file.path.relative_to(self._folder))


def _check_url(url: str) -> None:
    what: str = EMPTY.fill()
    try:
        if values.socket_url(url):
            return
    except values.Wrong as wrong:
        what = wrong.what
    raise ConfigError(Problem("--napcat-url", what, WRITE_AS.fill(example=BOT_URL)))


def _is_a_service(check: Check) -> bool:
    """Whether the base URL is right: only a model service refuses a key."""
    return check.outcome is Outcome.OK or check.setting == "LLM_API_KEY"


def _mention(settings: Settings) -> Bilingual:
    """The last step: in a new group an owner must allow the bot to speak."""
    asks = settings.bot_owners and not settings.bot_groups and settings.bot_new_group == "ask"
    return (MENTION_AS_OWNER if asks else MENTION).fill()


def _own_url(settings: Settings) -> str:
    """The bot's address for a server on this computer."""
    host = settings.onebot_host
    host = "127.0.0.1" if host in EVERYWHERE else host
    return f"ws://{f'[{host}]' if ':' in host else host}:{settings.onebot_port}/"


def _near(settings: Settings) -> str:
    """The address of a model on this computer as seen from a container; empty if the model is
    elsewhere.
    """
    url = urlsplit(settings.llm_base_url)
    if not values.is_loopback(url.hostname or ""):
        return ""
    port = f":{url.port}" if url.port else ""
    return url._replace(netloc=f"{FROM_A_CONTAINER}{port}").geturl()
