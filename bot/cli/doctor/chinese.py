"""The doctor in Chinese: each of his sentences, by the English one. A name or a number that
stands in one stands in the other; what a service or the system said itself stays as it was said.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from bot.cli.doctor.media import MEND
from bot.cli.setup.trial import mend_of
from bot.domain.errors import (
    ContentFiltered,
    ImagesUnsupported,
    ModelAuth,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelTransport,
    ToolsUnsupported,
)
from bot.domain.sentences import Sentences
from config.checks import HOW_TO_MAKE_ONE

MODEL_ERRORS: Final = (
    ContentFiltered,
    ImagesUnsupported,
    ModelAuth,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelTransport,
    ToolsUnsupported,
)

SENTENCES: Final = {
    # --- settings, token, privacy
    "{} is not set: nothing tells the OneBot server from a stranger": (
        "没设 {}：分不清连上来的是 OneBot 服务还是陌生人"
    ),
    "{} is easy to guess": "{} 太容易猜到",
    HOW_TO_MAKE_ONE: (
        "用 `openssl rand -hex 16` 生成一个，填在这里，也填到 OneBot 服务（NapCat、LLBot）的令牌里"
    ),
    "has {} characters; tokens of their own have {}": "有 {} 位；单独设了令牌的账号：{}",
    "has {} characters": "有 {} 位",
    "{}, as any process of this machine or tunnel to it can": (
        "{}；本机的任何进程和隧道也都能冒填"
    ),
    "{} is believed who asks: it must set X-Forwarded-For itself, else anybody forges it": (
        "采信 {} 说的来访地址：它必须自己写 X-Forwarded-For，否则谁都能冒填"
    ),
    "nothing is open to others": "这台机器上的其他人读不到密钥，也改不了机器人的目录",
    "{} holds secrets, and others on this machine can read it": (
        "{} 里有密钥，这台机器上的其他人也能读"
    ),
    "{} can be written by {}": "{} 可以被 {} 改写",
    "chmod 600 {}": "执行 chmod 600 {}",
    "See whose it is, and chmod go-w {}": "先看看是谁的，再执行 chmod go-w {}",
    # --- folders, journal
    "Let the account that runs the bot write there (chown, chmod, or a volume that is not "
    "read-only): {}": "让运行机器人的用户能写（chown、chmod，或者换成可写的挂载）：{}",
    "{} cannot be written ({})": "{} 写不了（{}）",
    "{} can be written, {} MiB free": "{} 可以写，还剩 {} MiB",
    "{} can be made, {} MiB free": "{} 可以建，还剩 {} MiB",
    "Make room on the disk": "磁盘快满了，清理一下",
    "Make room on the disk soon": "磁盘空间不多了，尽快清理",
    "no journal yet at {}: the bot makes it": "{} 还没有数据库，机器人启动时会建",
    "{} is empty: the bot makes its tables": "{} 是空的，机器人启动时会建表",
    "{} opens, its schema is current ({})": "{} 打得开，表结构是最新的（{}）",
    "{} has schema {}, not yet {}": "{} 的表结构是 {}，还不是 {}",
    "Start the bot: it migrates it": "启动机器人就会升级",
    "{} is of a newer version of the bot (schema {})": "{} 是更新版本的机器人用的（表结构 {}）",
    "Start that version, or name another database in STORE_URL": (
        "启动那个版本，或者在 STORE_URL 里换一个数据库"
    ),
    "the journal does not open ({})": "数据库打不开（{}）",
    "See that the database runs and STORE_URL names it; a damaged file is put aside when the bot "
    "starts": "看看数据库开着没有、STORE_URL 对不对；文件坏了的话，机器人启动时会挪到一边",
    "no line about {} new groups reached an owner: {}": "有 {} 个新群还没能告诉主人：{}",
    "Say /live GROUP or /off GROUP to the bot in private; make its account your friend": (
        "私聊机器人发 /上线 群号 或 /忽略 群号；并加它的账号为好友"
    ),
    "no owner can read the drafts of the groups in a shadow: {}": (
        "影子模式的群有草稿，但没有主人能看：{}"
    ),
    "no owner can answer the friend requests and invites that wait: {}": (
        "有好友申请或入群邀请在等，但没有主人能答复：{}"
    ),
    "Set BOT_OWNERS to your own QQ number": "把 BOT_OWNERS 设成你自己的 QQ 号",
    # --- limits
    "group {} has {} people, and not all that they may cost is limited": (
        "群 {} 有 {} 人，他们能花多少还没有都设上限"
    ),
    "Set {} (docs/limits.md)": "设置 {}（docs/zh/limits.md）",
    "nobody knows the price of {}: {} counts nothing of it": "不知道 {} 的价格，{} 没把它算进去",
    "Give its price in a file that LLM_PRICES names (docs/models.md), or set {} beside it": (
        "在 LLM_PRICES 指定的文件里写上价格（docs/zh/models.md），或者同时设置 {}"
    ),
    "Give its price in a file that LLM_PRICES names (docs/models.md)": (
        "在 LLM_PRICES 指定的文件里写上价格（docs/zh/models.md）"
    ),
    # --- models, clock
    "could not be compared: the model's server does not answer": "没法对时：模型的服务器没有答复",
    "See what `model` says": "看“模型”那一行",
    "the model's server does not say what time it is": "模型的服务器没有说现在几点",
    "agrees with the model's server": "和模型的服务器一致",
    "is {} s ahead of the model's server": "比模型的服务器快 {} 秒",
    "is {} s behind the model's server": "比模型的服务器慢 {} 秒",
    "Let this machine set its clock by NTP, as with `timedatectl set-ntp true`": (
        "让这台机器用 NTP 自动对时，比如 `timedatectl set-ntp true`"
    ),
    "is the main model": "就是主模型",
    "{} answers in {} s, in one piece, not streamed, through the proxy {}": (
        "{} 用 {} 秒答复，一次发完，不是流式，经过代理 {}"
    ),
    "{} answers in {} s, in one piece, not streamed": "{} 用 {} 秒答复，一次发完，不是流式",
    "{} answers in {} s, streamed, first token after {} s, through the proxy {}": (
        "{} 用 {} 秒答复，流式，首个 token 等了 {} 秒，经过代理 {}"
    ),
    "{} answers in {} s, streamed, first token after {} s": (
        "{} 用 {} 秒答复，流式，首个 token 等了 {} 秒"
    ),
    "{} does not answer: {}": "{} 没有答复：{}",
    "{}: its name was not found, check the base URL and the DNS ({})": (
        "{}：找不到这个域名，请检查接口地址和 DNS（{}）"
    ),
    "{}: the proxy is unreachable, check HTTP_PROXY, HTTPS_PROXY and NO_PROXY ({})": (
        "{}：连不上代理，请检查 HTTP_PROXY、HTTPS_PROXY、NO_PROXY（{}）"
    ),
    "{}: the proxy refused, check HTTP_PROXY, HTTPS_PROXY and NO_PROXY ({})": (
        "{}：代理拒绝了，请检查 HTTP_PROXY、HTTPS_PROXY、NO_PROXY（{}）"
    ),
    "{}: its certificate is not trusted, check the base URL and the clock ({})": (
        "{}：证书不受信任，请检查接口地址和时钟（{}）"
    ),
    "{}: no TLS with it, check whether the base URL should begin with http or https ({})": (
        "{}：建立不了 TLS 连接，请看接口地址该用 http 还是 https（{}）"
    ),
    "{}: it cannot be reached in time, check the base URL, the network and the proxy ({})": (
        "{}：连接超时，请检查接口地址、网络和代理（{}）"
    ),
    "{}: it cannot be reached, check the base URL and that the server runs ({})": (
        "{}：连不上，请检查接口地址，看看服务开着没有（{}）"
    ),
    "{}: it hung up before it answered ({})": "{}：没有答复就挂断了（{}）",
    "{}: the answer was cut off ({})": "{}：答复没发完就断了（{}）",
    "{} cannot be shown pictures: {}": "不能给 {} 看图片：{}",
    "{} was shown a red picture and says: {}": "给 {} 看一张红色的图，它说：{}",
    "{} sees pictures, in {} s": "{} 能看图片，用了 {} 秒",
    "a request with a tool fails: {}": "带工具的请求失败了：{}",
    "the model answered in words instead of calling a tool": "模型没有调用工具，而是直接说话",
    "Take one that calls tools": "换一个会调用工具的模型",
    "calls a tool in {} s": "会调用工具，用了 {} 秒",
    # --- media url
    "{} leads to the bot": "{} 通到机器人",
    "{} leads elsewhere: it answered {}": "{} 没有通到机器人，那边答复了 {}",
    MEND: (
        "看看 MEDIA_URL 写的是不是这台机器和 WEB_PORT（docs/zh/cluster.md），然后重启机器人；"
        "不然大文件发不出去"
    ),
    # --- sources of tools
    "can be reached": "连得上",
    "{} answers": "{} 有答复",
    "{} answered {}": "{} 答复了 {}",
    "{} can be used": "{} 可以用",
    "can be used": "可以用",
    "none of its {} hosts can be used, as {}": "{} 个地址都用不了，比如：{}",
    "See that this machine reaches it; behind a firewall set HTTPS_PROXY, or a mirror in "
    "TOOLS_MIRRORS": (
        "看看这台机器连不连得上；有防火墙就设 HTTPS_PROXY，或者在 TOOLS_MIRRORS 里设镜像"
    ),
    "See docs/weather.md: its key or host in .env, or TOOLS_CONTACT; until then the next source is "
    "asked": (
        "见 docs/zh/weather.md：检查 .env 里的密钥、地址或 TOOLS_CONTACT；在那之前会用下一个来源"
    ),
    # --- broker, workers, gateways
    "RabbitMQ cannot be reached ({})": "连不上 RabbitMQ（{}）",
    "Start it, or correct BROKER_URL: its host, its user, its password": (
        "启动它，或者改正 BROKER_URL 里的地址、用户名、密码"
    ),
    "{} is too old": "{} 太旧",
    "Install RabbitMQ 3.10 or newer": "请装 RabbitMQ 3.10 或更新的版本",
    "{} is empty: gateways and workers make their queues": "{} 是空的，gateway 和 worker 会建队列",
    "{}: {} events wait in {} partitions": "{}：{} 个事件在 {} 个分区里等着",
    "every partition has one": "每个分区都有",
    "none is at work yet": "还没有启动的",
    "nobody takes from partition {}": "分区 {} 没有 worker 在取",
    "Start a worker (BOT_ROLE=worker); its log says what it waits for": (
        "启动一个 worker（BOT_ROLE=worker）；它的日志里写着在等什么"
    ),
    "who takes from partition {} holds no lease, and cannot answer": (
        "在取分区 {} 的 worker 没有租约，答复不了"
    ),
    "If that lasts: see that its worker reaches PostgreSQL and is not frozen, and that STORE_URL "
    "is the same everywhere; restart that worker": (
        "如果一直这样：看看这个 worker 连不连得上 PostgreSQL、有没有卡死，"
        "各处的 STORE_URL 是不是同一个；然后重启它"
    ),
    "who holds the lease takes nothing from partition {}": "持有租约的 worker 没有在取分区 {}",
    "If that lasts: see that this worker reaches RabbitMQ, by its log, and restart it": (
        "如果一直这样：从日志看这个 worker 连不连得上 RabbitMQ，然后重启它"
    ),
    "none is there: nobody is heard": "一个也没有：谁说话都听不到",
    "Start a gateway (BOT_ROLE=gateway); its log says why it does not reach the broker": (
        "启动一个 gateway（BOT_ROLE=gateway）；它的日志里写着为什么连不上 RabbitMQ"
    ),
    "none is there yet": "还没有",
    "none is at this gateway, account {} is at another one": (
        "这个网关上没有账号，账号 {} 在别的网关上"
    ),
    "{} events were set aside": "有 {} 个事件被放到一边",
    "The log of the workers says why; once that is mended: rabbitmqctl purge_queue frost.dead": (
        "worker 的日志里写着原因；解决以后执行 rabbitmqctl purge_queue frost.dead"
    ),
    # --- OneBot, forward
    "{} is no name that is known here": "这里不认识 {} 这个名字",
    "In containers it is the name of the service, in the same network; on one machine, 127.0.0.1": (
        "在容器里填服务名，要在同一个网络；在同一台机器上填 127.0.0.1"
    ),
    "the address of {} is {}": "{} 的地址是 {}",
    "{} does not take our token (HTTP {})": "{} 不认我们的令牌（HTTP {}）",
    "{} does not take our token": "{} 不认我们的令牌",
    "{} hangs up at once: our token may be wrong": "{} 一连上就挂断：令牌可能不对",
    "Set ONEBOT_ACCESS_TOKEN to the token of the OneBot server's websocket server": (
        "把 ONEBOT_ACCESS_TOKEN 设成 OneBot 服务里 WebSocket 服务端的令牌"
    ),
    "{} is no websocket server (HTTP {})": "{} 不是 WebSocket 服务端（HTTP {}）",
    "{} cannot be reached ({})": "连不上 {}（{}）",
    "Start the OneBot server, switch its websocket server on, and see that ONEBOT_URL has its host "
    "and port": "启动 OneBot 服务，打开它的 WebSocket 服务端，并核对 ONEBOT_URL 的地址和端口",
    "{} takes the connection but answers nothing": "{} 接受了连接，但什么也不答复",
    "Restart the OneBot server": "重启 OneBot 服务",
    "{} at {} takes our token": "{}（{}）认我们的令牌",
    "account {} is online": "账号 {} 在线",
    "account {} is offline": "账号 {} 不在线",
    "the account is offline": "账号不在线",
    "the account is online": "账号在线",
    "{} does not say who is logged in, and whether it is online": "{} 没说登录的是谁、在不在线",
    "Log the account in again at the OneBot server (scan the QR code in its WebUI)": (
        "在 OneBot 服务上重新登录账号（在它的 WebUI 里扫码）"
    ),
    # --- a part of others
    "{} could not be reached ({})": "连不上 {}（{}）",
    # --- of any check
    "was not finished after {} s": "过了 {} 秒还没查完",
    "See what it waits for: the disk, a name, or the network": (
        "看看它在等什么：磁盘、域名解析，还是网络"
    ),
    "the check itself broke ({})": "检查本身出错了（{}）",
    "Please report this": "请反馈给开发者",
}
"""In the order in which they are tried: what says more stands before what says less."""


def chinese(text: str) -> str:
    """The Chinese sentence; the English one where there is none."""
    return _sentences()(text)


@cache
def _sentences() -> Sentences:
    mends = (mend_of(kind("")) for kind in MODEL_ERRORS)
    return Sentences({**{mend.en: mend.zh for mend in mends}, **SENTENCES})
