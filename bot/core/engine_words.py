"""The engine's own words as the service has them: what people and owners read is in both languages.

`ENGINE_WORDS` is the table of the process. What a run tells its model is of one language and stands
with the prompt's other words.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Self

from bot.core.language import CATALOGUE, Bilingual, Language, Phrase
from frostagent.words import ENGLISH, Words

SENT: Final = "消息已发送"
"""Told to a model about a message that arrived."""

STILL_WORKING: Final = Phrase("{name} 还在处理，请再稍等一会儿～", ENGLISH.still_working)
NEEDS: Final = Phrase("需要 {needs}", ENGLISH.needs)
REQUIRES: Final = Phrase("要设置 {requires}", ENGLISH.requires)
NEEDS_AND_REQUIRES: Final = Phrase("需要 {needs}，还要设置 {requires}", ENGLISH.needs_and_requires)
NO_BODY: Final = Phrase("没有实现", ENGLISH.no_body)
NOT_AVAILABLE: Final = Phrase("没说原因", ENGLISH.not_available)
CANNOT_SAY: Final = Phrase("检查能不能用时出错（{error}）", ENGLISH.cannot_say)
KEY_REFUSED: Final = Phrase(
    "模型 {name} 的第 {number} 个密钥不能用了，已改用其他密钥或备用模型，"
    "请检查密钥和余额 ({kind}: {reason})",
    ENGLISH.key_refused,
)
NOT_FOUND: Final = Phrase(
    "模型 {name} 不存在或未开通，已改用备用模型，请检查模型名称和接口地址 ({kind}: {reason})",
    ENGLISH.model_not_found,
)
BROKEN: Final = Phrase("{name}：{reason}", ENGLISH.broken)
IN_ITS_WORDS: Final = Phrase("{reason}（{words}）", ENGLISH.in_its_words)
TOO_LONG: Final = Phrase("过了 {seconds} 秒还没答复完", ENGLISH.too_long)
NOT_BEGUN: Final = Phrase("等了 {seconds} 秒还没开始答复：模型可能还在加载", ENGLISH.not_begun)
STOPPED: Final = Phrase("答复停了 {seconds} 秒", ENGLISH.answer_stopped)
FAILED: Final = Phrase("连接失败", ENGLISH.connection_failed)
NAME: Final = Phrase("找不到这个域名，请检查接口地址和 DNS", ENGLISH.name_not_found)
PROXY: Final = Phrase(
    "连不上代理，请检查 HTTP_PROXY、HTTPS_PROXY、NO_PROXY", ENGLISH.proxy_unreachable
)
PROXY_REFUSED: Final = Phrase(
    "代理拒绝了，请检查 HTTP_PROXY、HTTPS_PROXY、NO_PROXY", ENGLISH.proxy_refused
)
CERTIFICATE: Final = Phrase("证书不受信任，请检查接口地址和时钟", ENGLISH.certificate)
NO_TLS: Final = Phrase("建立不了 TLS 连接，请看接口地址该用 http 还是 https", ENGLISH.no_tls)
NOT_IN_TIME: Final = Phrase("连接超时，请检查接口地址、网络和代理", ENGLISH.not_in_time)
UNREACHABLE: Final = Phrase("连不上，请检查接口地址，看看服务开着没有", ENGLISH.unreachable)
HUNG_UP: Final = Phrase("没有答复就挂断了", ENGLISH.hung_up)
CUT_OFF: Final = Phrase("答复没发完就断了", ENGLISH.cut_off)
CATALOGUE.register(__name__, globals())


class _Template(str):
    """A phrase as the engine fills it in: by `format`."""

    __slots__ = ("phrase",)
    phrase: Phrase

    def __new__(cls, phrase: Phrase) -> Self:
        made = super().__new__(cls, phrase.en)
        made.phrase = phrase
        return made

    def format(self, *_: object, **values: object) -> Bilingual:
        return self.phrase.fill(**values)


ENGINE_WORDS: Final = Words(
    receipts=(
        SENT,
        *("已发送", "已发出", "消息已发出", "发送成功", "消息发送成功", "已回复", "已回答"),
        *ENGLISH.receipts,
    ),
    picture="[图片 {number}]",
    needs=_Template(NEEDS),
    requires=_Template(REQUIRES),
    needs_and_requires=_Template(NEEDS_AND_REQUIRES),
    no_body=NO_BODY.fill(),
    not_available=NOT_AVAILABLE.fill(),
    cannot_say=_Template(CANNOT_SAY),
    key_refused=_Template(KEY_REFUSED),
    model_not_found=_Template(NOT_FOUND),
    broken=_Template(BROKEN),
    in_its_words=_Template(IN_ITS_WORDS),
    too_long=_Template(TOO_LONG),
    not_begun=_Template(NOT_BEGUN),
    answer_stopped=_Template(STOPPED),
    connection_failed=FAILED.fill(),
    name_not_found=NAME.fill(),
    proxy_unreachable=PROXY.fill(),
    proxy_refused=PROXY_REFUSED.fill(),
    certificate=CERTIFICATE.fill(),
    no_tls=NO_TLS.fill(),
    not_in_time=NOT_IN_TIME.fill(),
    unreachable=UNREACHABLE.fill(),
    hung_up=HUNG_UP.fill(),
    cut_off=CUT_OFF.fill(),
)


def by_asker(words: Words) -> tuple[Words, Words]:
    """The table for runs of askers of either language, by that."""
    zh, en = (
        replace(words, still_working=language.either(STILL_WORKING.zh, STILL_WORKING.en))
        for language in Language
    )
    return zh, en
