"""The tokens of OneBot servers: one for all, one per account, or both.

`abc` is for all; `10001:abc,10002:def` are one account's each; `10001:abc,ghi` is one of 10001, and
one for all others. Text without an `account:` is one token, including commas and colons.
"""

from __future__ import annotations

import re
from base64 import b32decode
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from bot.core.language import Bilingual
from config import values
from config.values import Wrong

BETWEEN = re.compile(r"[\s,，;；]+")
COLON = re.compile(r"\s*[:：]\s*")
OWNED = re.compile(r"([1-9][0-9]{0,17}):(.*)")  # `account:token`
TOTP_MEND = Bilingual(
    "Make one: `frostagent console --totp`", "生成一个：`frostagent console --totp`"
)
CONSOLE_MEND = Bilingual(
    "Make one: `setup` does, or openssl rand -hex 16",
    "生成一个：`setup` 会生成，或者用 openssl rand -hex 16",
)
SHORTEST_TOTP = 16  # bytes, required by RFC 4226
SHORTEST_CONSOLE = 22  # characters of base64 that hold 128 bits
MEND = Bilingual(
    "Write it as 10001:token,10002:token, each token once",
    "写成 10001:令牌,10002:令牌，每个令牌只写一次",
)


@dataclass(frozen=True, slots=True)
class AccessTokens:
    """`common` is for accounts not in `accounts`; empty if each has its own, or none is needed."""

    common: str = field(default="", repr=False)
    accounts: Mapping[int, str] = field(default_factory=dict, repr=False)

    @property
    def all(self) -> tuple[str, ...]:
        return (*filter(None, [self.common]), *self.accounts.values())

    @property
    def only(self) -> tuple[int, str]:
        """The only token, and its account (0: none). Raises Wrong for several."""
        if len(self.all) > 1:
            raise Wrong(
                Bilingual("has several tokens", "有好几个令牌"),
                Bilingual(
                    "Keep the one of the server that the bot dials",
                    "只留机器人要连的那台服务的令牌",
                ),
            )
        return next(iter(self.accounts.items()), (0, self.common))

    def token_for(self, account: int) -> str:
        """The token of this account; for 0 (unknown), the one that most accounts may use."""
        return self.accounts.get(account) or self.common or next(iter(self.accounts.values()), "")


def tokens(value: SecretStr) -> SecretStr:
    """One token or a list, checked and normalized. No problem quotes a token."""
    found = read_tokens(value.get_secret_value())
    owned = (f"{account}:{token}" for account, token in found.accounts.items())
    return SecretStr(",".join((*owned, *filter(None, [found.common]))))


def read_tokens(text: str) -> AccessTokens:
    """Raises Wrong."""
    parts = parts_of(text)
    for _, token in parts:
        values.secret(SecretStr(token))
    accounts = {account: token for account, token in parts if account}
    common = [token for account, token in parts if not account]
    if twice := next(
        (account for account in accounts if [one for one, _ in parts].count(account) > 1), 0
    ):
        raise Wrong(
            Bilingual(f"has two tokens for account {twice}", f"给账号 {twice} 写了两个令牌"), MEND
        )
    if bare := next((account for account, token in accounts.items() if not token), 0):
        raise Wrong(Bilingual(f"has no token for account {bare}", f"没有账号 {bare} 的令牌"), MEND)
    if len(common) > 1:
        raise Wrong(
            Bilingual("has two tokens without an account", "有两个不属于任何账号的令牌"),
            MEND,
        )
    if len({token for _, token in parts}) < len(parts):
        raise Wrong(
            Bilingual(
                "has the same token twice, so it does not identify the account",
                "里面同一个令牌写了两次，分不清是哪个账号",
            ),
            MEND,
        )
    return AccessTokens("".join(common), accounts)


def parts_of(text: str) -> list[tuple[int, str]]:
    """The tokens with their accounts, 0 for none; unchecked."""
    items = [item for item in BETWEEN.split(COLON.sub(":", text)) if item]
    owned = [OWNED.fullmatch(item) for item in items]
    if not any(owned):
        return [(0, text)] if text else []
    return [
        (int(found[1]), found[2]) if found else (0, item)
        for item, found in zip(items, owned, strict=True)
    ]


def console_token(value: SecretStr) -> SecretStr:
    """The console's token, which must be too long to guess in years."""
    text = value.get_secret_value()
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise Wrong(
            Bilingual(
                "has a space, a line break or a character that is not ASCII",
                "里面有空格、换行或非 ASCII 字符",
            ),
            CONSOLE_MEND,
        )
    if text and len(text) < SHORTEST_CONSOLE:
        raise Wrong(
            Bilingual(
                f"is shorter than {SHORTEST_CONSOLE} characters", f"不到 {SHORTEST_CONSOLE} 位"
            ),
            CONSOLE_MEND,
        )
    return value


def console_totp(value: SecretStr) -> SecretStr:
    """The secret of an authenticator app: base32, ignoring spaces and case."""
    text = "".join(value.get_secret_value().split()).upper().rstrip("=")
    try:
        key = b32decode(text + "=" * (-len(text) % 8))
    except ValueError as error:
        raise Wrong(
            Bilingual("is not base32 (A-Z and 2-7)", "不是 base32（A-Z 和 2-7）"), TOTP_MEND
        ) from error
    if text and len(key) < SHORTEST_TOTP:
        raise Wrong(
            Bilingual(
                f"is shorter than {SHORTEST_TOTP * 8} bits", f"不到 {SHORTEST_TOTP * 8} 位（bit）"
            ),
            TOTP_MEND,
        )
    return SecretStr(text)
