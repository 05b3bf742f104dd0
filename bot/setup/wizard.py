"""`frostagent setup`: from what is known, asked and tried to `.env` and NapCat's settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from bot.domain.errors import ConfigError, Problem
from bot.domain.masking import Mask
from bot.setup.answers import ONEBOT, TOKENS, check, known, with_tokens
from bot.setup.env_file import fill
from bot.setup.files import NewFile, read_text, write_files
from bot.setup.questions import ask_model, ask_people
from bot.setup.servers import BOT_URL, Link, link_of, tokens_for, write_onebot
from bot.setup.terminal import Terminal
from bot.setup.trial import Trial
from config import sources, values
from config.endpoints import Endpoint
from config.secrets import proxy_secrets
from config.settings import Settings

ENV = Path(".env")
EXAMPLE = Path(".env.example")
NAPCAT = Path("napcat", "config")

NEXT = """\
下一步 Next:
  docker compose up -d            启动机器人和 NapCat  start the bot and NapCat
  docker compose logs -f napcat   用机器人账号扫码  scan the QR code with the bot's account
不用 Docker 时 Without Docker: make run"""

NEXT_TO_THE_MODEL = """\
下一步 Next: make run
模型在本机，用 Docker 时容器里的 127.0.0.1 是容器自己  The model is on this computer. With Docker, 127.0.0.1 is the
container itself: put host.docker.internal in its place in LLM_BASE_URL, then docker compose up -d"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What was typed after `setup`: answers by their names in `.env`, and how to go about it."""

    typed: Mapping[str, str] = field(default_factory=dict)
    napcat_url: str = BOT_URL
    force: bool = False
    test: bool = True
    interactive: bool = True


class Wizard:
    """One setup in one folder. Nothing is written before everything is known, tried and agreed to."""

    def __init__(
        self,
        *,
        folder: Path,
        environ: Mapping[str, str],
        terminal: Terminal,
        try_endpoint: Callable[[Endpoint], Trial],
        make_token: Callable[[], str],
    ) -> None:
        """`folder` is where everything is, and where everything is written."""
        self._folder = folder
        self._environ = environ
        self._terminal = terminal
        self._try_endpoint = try_endpoint
        self._make_token = make_token
        self._mask = Mask(proxy_secrets(environ))

    def run(self, wishes: Wishes) -> bool:
        """Whether everything is written. Raises ConfigError for what is wrong, typer.Abort where somebody leaves."""
        _check_url(wishes.napcat_url)
        lines = sources.read_env_file(self._folder / ENV)
        made, hidden = sources.read_made_file(self._folder / ENV)
        answers = known(wishes.typed, self._environ, (*made, *lines))
        if wishes.interactive:
            answers = self._ask(answers, test=wishes.test)
        complete = with_tokens(answers, self._make_token)
        settings = check(complete)
        # What init made is not for this account to read: a new token would not be the one the OneBot server has.
        answers = {**dict.fromkeys(TOKENS, ""), **answers} if hidden else complete
        answers["LLM_BASE_URL"] = settings.llm_base_url
        if wishes.test and not wishes.interactive and not self._answers(settings.main_model):
            self._terminal.tell("没有写入任何文件 Nothing was written. --no-test writes it all the same.")
            return False
        link = link_of(settings, bot_url=wishes.napcat_url) if answers[ONEBOT] else None
        files = [*self._env_file(answers), *self._onebot_file(link)]
        if not self._may_replace(files, wishes):
            return False
        write_files(files)
        self._report(files, link)
        self._terminal.tell(NEXT_TO_THE_MODEL if _is_near(settings) else NEXT)
        return True

    # --- asking -----------------------------------------------------------------------------------

    def _ask(self, answers: dict[str, str], *, test: bool) -> dict[str, str]:
        again = True
        while again:
            answers = ask_model(self._terminal, answers)
            again = test and not self._answers(check(with_tokens(answers, self._make_token)).main_model)
            again = again and self._terminal.confirm("重新填写 Answer these again?", default=True)
        return ask_people(self._terminal, answers)

    def _answers(self, endpoint: Endpoint) -> bool:
        self._terminal.tell(f"正在测试模型 Trying {endpoint.model} ...")
        trial = self._try_endpoint(endpoint)
        if trial.ok:
            self._terminal.tell(f"  ok, {trial.seconds:.1f} s")
        else:
            self._terminal.tell(f"  失败 It does not answer: {self._mask(trial.why)}\n  {trial.mend}.")
        return trial.ok

    # --- what is to be written --------------------------------------------------------------------

    def _env_file(self, answers: Mapping[str, str]) -> Iterable[NewFile]:
        path = self._folder / ENV
        old = read_text(path)
        begin = read_text(self._folder / EXAMPLE) if old is None else old
        if begin is None:
            raise ConfigError(Problem(str(EXAMPLE), "is not here", "Run setup in the folder of FrostAgent"))
        text = fill(begin, answers)
        if text != old:
            yield NewFile(path, text)

    def _onebot_file(self, link: Link | None) -> Iterable[NewFile]:
        path = self._folder / NAPCAT / "onebot11.json"
        if link is not None and link.token not in tokens_for(read_text(path) or "", link):
            yield NewFile(path, write_onebot(link))

    def _may_replace(self, files: Iterable[NewFile], wishes: Wishes) -> bool:
        there = [self._shown(file) for file in files if file.path.exists()]
        if not there or wishes.force:
            return True
        if wishes.interactive:
            agreed = self._terminal.confirm(f"覆盖 Overwrite {', '.join(there)}?", default=False)
            if not agreed:
                self._terminal.tell("没有写入任何文件 Nothing was written.")
            return agreed
        raise ConfigError(*(Problem(name, "is there already", "Add --force to overwrite it") for name in there))

    def _report(self, files: Iterable[NewFile], link: Link | None) -> None:
        names = [self._shown(file) for file in files]
        self._terminal.tell(f"已写入 Wrote {', '.join(names)}" if names else "没有变化 Nothing has changed")
        for path in sorted((self._folder / NAPCAT).glob("onebot11_*.json")):
            if link is not None and tokens_for(read_text(path) or "", link) - {link.token}:
                self._terminal.tell(
                    f"注意 Note: {path.relative_to(self._folder)} has another token than .env, and NapCat reads that"
                    " file for this account. Set the token there (NapCat's WebUI, Network), or remove the file."
                )

    def _shown(self, file: NewFile) -> str:
        return str(file.path.relative_to(self._folder))


def _check_url(url: str) -> None:
    what = "is empty"
    try:
        if values.socket_url(url):
            return
    except values.Wrong as wrong:
        what = wrong.what
    raise ConfigError(Problem("--napcat-url", what, f"Write it as {BOT_URL}"))


def _is_near(settings: Settings) -> bool:
    """Whether the model is on this computer, where no container finds it."""
    return values.is_loopback(urlsplit(settings.llm_base_url).hostname or "")
