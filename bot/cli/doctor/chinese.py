"""The doctor in Chinese: each sentence by the English one. What a service or the system said
itself stays as it was said.
"""

from __future__ import annotations

from typing import Final

from bot.cli.setup.trial import NO_EYES, Mend
from bot.domain.errors import Problem
from bot.domain.language import Bilingual, Translations, in_chinese
from config.checks import HOW_TO_MAKE_ONE

CHECKS: Final = {
    "ok": "正常",
    "warning": "警告",
    "problem": "问题",
    "account": "账号",
    "broker": "消息队列",
    "clock": "时钟",
    "coder": "Coder 的模型",
    "console proxy": "控制台的代理",
    "data folder": "数据目录",
    "drafts": "草稿",
    "fallback": "备用模型",
    "games": "游戏表",
    "gateways": "gateway",
    "leases": "租约",
    "limits": "额度",
    "media url": "大文件",
    "model": "模型",
    "model tools": "模型调用工具",
    "new groups": "新的群",
    "onebot": "OneBot",
    "onebot host": "OneBot 地址",
    "onebot port": "OneBot 端口",
    "picture": "图片",
    "ports": "端口",
    "prices": "价格表",
    "privacy": "文件权限",
    "requests": "好友申请和邀请",
    "settings": "配置",
    "store": "数据库",
    "token": "令牌",
    "tools": "工具",
    "versions": "游戏版本",
    "vision": "看图的模型",
    "weather": "天气",
    "web port": "网页端口",
    "workers": "worker",
}
"""The verdicts, and the names of the checks, by the English ones."""

SENTENCES: Final = {
    # --- settings: what is wrong, as config/ says it
    "is not set": "没有设置",
    "is set but not used": "设置了，但没有用到",
    "still has the text of an example": "还是示例里的文字",
    "Put your own in its place": "换成你自己的",
    "Install it: .venv/bin/pip install -r requirements-broker.txt, without a checkout pip install "
    "aio-pika": (
        "安装它：.venv/bin/pip install -r requirements-broker.txt，没有源码目录时用"
        " pip install aio-pika"
    ),
    "still has the host of an example": "还是示例里的域名",
    "Put the base url of your model service in its place": "换成你的模型服务的接口地址",
    "Set the base url of an OpenAI-compatible API, as https://api.deepseek.com/v1": (
        "设成兼容 OpenAI 的接口地址，比如 https://api.deepseek.com/v1"
    ),
    "Set the name of the model as its service spells it": "设成模型服务里写的模型名",
    "has a space, a line break or a character that is not ASCII": (
        "里面有空格、换行或非 ASCII 字符"
    ),
    "Copy it once more, without “Bearer”": "重新复制一次，不要带“Bearer”",
    "has a space or a character that no url can have": "里面有空格或网址里不能有的字符",
    "has no host": "没有域名",
    "has an access token in it": "里面有访问令牌",
    "Put the token in ONEBOT_ACCESS_TOKEN, where it is kept secret": (
        "把令牌放进 ONEBOT_ACCESS_TOKEN，那里会保密"
    ),
    "Set ONEBOT_MODE=forward to connect to it, or remove it": (
        "要连过去就设 ONEBOT_MODE=forward，否则删掉它"
    ),
    "is empty, but with BOT_NEW_GROUP=shadow an owner reads every answer first": (
        "是空的，但 BOT_NEW_GROUP=shadow 时每条回答都要主人先看"
    ),
    "Set your own QQ number, or BOT_NEW_GROUP=live": "设成你自己的 QQ 号，或者 BOT_NEW_GROUP=live",
    "is a url, not a number": "是网址，不是数字",
    "is not UTF-8 text": "不是 UTF-8 文本",
    "Save it once more as UTF-8": "重新存成 UTF-8",
    "is set, but there is no such variable: ignored": "没有这个配置项，已忽略",
    "is set, but nothing listens there with WEB_PORT=0": "设置了，但 WEB_PORT=0 时不监听",
    "Let the account that runs the bot read it, or remove it": (
        "让运行机器人的用户能读它，或者删掉它"
    ),
    "Make it, or leave the setting out": "建一个，或者不要设这一项",
    "is not the url of an SQLite or PostgreSQL database": "不是 SQLite 或 PostgreSQL 的地址",
    "is not the url of a RabbitMQ": "不是 RabbitMQ 的地址",
    "needs a library that is not installed": "需要的库没有安装",
    "is a file, but with BROKER_URL another worker has to be able to take over": (
        "是文件，但有 BROKER_URL 时要能由另一个 worker 接手"
    ),
    "Name a PostgreSQL database, as postgresql://user:password@host/database": (
        "写一个 PostgreSQL 的地址，比如 postgresql://user:password@host/database"
    ),
    "has one token twice, so that it says nothing about the account": (
        "里面同一个令牌写了两次，分不清是哪个账号"
    ),
    "Set QWEATHER_KEY, or the three of QWEATHER_JWT_": (
        "设置 QWEATHER_KEY，或 QWEATHER_JWT_ 的三项"
    ),
    "does nothing on Windows": "在 Windows 上不起作用",
    "Set the time zone of Windows instead, and remove this line": (
        "请改 Windows 的时区，并删掉这一行"
    ),
    # --- token, privacy
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
    "{} answers in {} s, in one piece, not streamed": "{} 用 {} 秒答复，一次发完，不是流式",
    "{} answers in {} s, streamed, first token after {} s": (
        "{} 用 {} 秒答复，流式，首个 token 等了 {} 秒"
    ),
    "{} does not answer: {}": "{} 没有答复：{}",
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
    "See that MEDIA_URL names this machine and WEB_PORT (docs/cluster.md), and start the bot anew; "
    "large files are not sent otherwise": (
        "看看 MEDIA_URL 写的是不是这台机器和 WEB_PORT（docs/zh/cluster.md），然后重启机器人；"
        "不然大文件发不出去"
    ),
    # --- sources of tools
    "can be reached": "连得上",
    "{} answers": "{} 有答复",
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
    "{} does not say who is logged in, and whether it is online": "{} 没说登录的是谁、在不在线",
    "Log the account in again at the OneBot server (scan the QR code in its WebUI)": (
        "在 OneBot 服务上重新登录账号（在它的 WebUI 里扫码）"
    ),
    # --- picture
    NO_EYES: "在 LLM_VISION_MODEL 里写一个能看图、接口地址相同的模型",
    "was not sent: the OneBot server talks with whatever has the port now": (
        "没有发送：OneBot 服务连着的是正占用端口的程序"
    ),
    "Stop the bot and ask again; with docker: `docker compose stop bot`, then"
    " `docker compose run --rm --no-deps --use-aliases bot doctor --send-image`": (
        "先停下机器人再查；用 docker：先 `docker compose stop bot`，再"
        " `docker compose run --rm --no-deps --use-aliases bot doctor --send-image`"
    ),
    "was not sent: the account is offline": "没有发送：账号不在线",
    "was not sent: nobody knows to whom": "没有发送：不知道发给谁",
    "Name an owner in BOT_OWNERS": "在 BOT_OWNERS 里写上主人的 QQ 号",
    "could not be sent: the OneBot server hung up": "发不出去：OneBot 服务挂断了",
    "could not be sent to {} ({}: {})": "没能发给 {}（{}：{}）",
    "was sent to {}, but the OneBot server does not say whether it arrived": (
        "发给了 {}，但 OneBot 服务没说到没到"
    ),
    "was sent to {}, but QQ did not confirm it in time": "发给了 {}，但 QQ 没有及时确认",
    "was taken as base64 and sent to {}": "以 base64 交给 OneBot 服务，发给了 {}",
    "was dropped: only the words beside it were sent to {}": "图片丢了：{} 只收到旁边的文字",
    "{}; get_image finds it": "{}；get_image 找得到",
    "the account itself": "账号自己",
    "no reason given": "没说原因",
    "Let them be friends on QQ, or name an owner in BOT_OWNERS who is one": (
        "让双方在 QQ 上加为好友，或者在 BOT_OWNERS 里写一个已是好友的主人"
    ),
    "See that the OneBot server's disk has room and its volumes can be written, and update it; "
    "where it runs on another machine, leave MEDIA_SEND=base64: it sees no file of the bot": (
        "看看 OneBot 服务的磁盘有没有空间、挂载能不能写，并把它升级；"
        "如果它在另一台机器上，请保持 MEDIA_SEND=base64：它看不到机器人的文件"
    ),
    "Look into that chat. If nothing is there, risk control holds pictures back: let a person use "
    "the account for some days, from a place QQ knows, and lower BOT_SEND_RATE": (
        "到那个聊天里看一眼。如果没有收到，就是风控拦下了图片："
        "让真人在常用的地方用这个账号几天，并调低 BOT_SEND_RATE"
    ),
    "See what the OneBot server's log says, and whether it takes base64 pictures at all: newer "
    "ones do": "看看 OneBot 服务的日志，以及它支不支持 base64 图片（新版都支持）",
    # --- ports
    "{} is free": "{} 空着",
    "{} is free: no bot is running there": "{} 空着：没有机器人在运行",
    "{} is used by the bot that runs": "{} 由正在运行的机器人占用",
    "{} cannot be listened on ({})": "{} 监听不了（{}）",
    "in use": "已被占用",
    "Stop what uses it, or choose another WEB_PORT (0: none)": (
        "停掉占用它的程序，或者换一个 WEB_PORT（0 表示不要）"
    ),
    "Stop what uses it, or choose another ONEBOT_PORT": (
        "停掉占用它的程序，或者换一个 ONEBOT_PORT"
    ),
    "none came to {}:{} within {} s": "没有 OneBot 服务连到 {}:{}，等了 {} 秒",
    "See that the OneBot server runs, and that its websocket client has the bot's address and the "
    "token in ONEBOT_ACCESS_TOKEN; its log says why it does not connect": (
        "看看 OneBot 服务开着没有，它的 WebSocket 客户端里机器人的地址和 ONEBOT_ACCESS_TOKEN "
        "的令牌对不对；它的日志里写着为什么连不上"
    ),
    "{} has account {}": "{} 登录的是账号 {}",
    "the bot is running, but {}": "机器人在运行，但是：{}",
    "the bot is running, but nobody says whether account {} is online": (
        "机器人在运行，但不知道账号 {} 在不在线"
    ),
    "the bot is running, account {} online": "机器人在运行，账号 {} 在线",
    # --- tools
    "all {} can be used": "{} 个都可以用",
    "{} cannot be used: it {}": "{} 用不了：{}",
    "The model is not told of it meanwhile; see its own documentation": (
        "在那之前模型不知道有它；请看它自己的文档"
    ),
    "{} is in TOOLS_DENY, _APPROVE or _AUDIENCE, but there is no such tool": (
        "TOOLS_DENY、_APPROVE 或 _AUDIENCE 里写了 {}，但没有这个工具"
    ),
    "Correct its name": "请改正名称",
    # --- parts of others
    "a OneBot server": "某个 OneBot 服务",
    "account {}": "账号 {}",
    "{}, or set {} beside it": "{}，或者同时设置 {}",
    "{}, through the proxy {}": "{}，经过代理 {}",
    "{}, with {}": "{} 个，账号：{}",
    "no account": "没有",
    "{}; and {} more": "{}；还有 {} 个",
    # --- of any check
    "was not finished after {} s": "过了 {} 秒还没查完",
    "See what it waits for: the disk, a name, or the network": (
        "看看它在等什么：磁盘、域名解析，还是网络"
    ),
    "the check itself broke ({}: {})": "检查本身出错了（{}：{}）",
    "Please report this": "请反馈给开发者",
}

_of_connections = Translations(
    {
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
        "{} could not be reached ({})": "连不上 {}（{}）",
        "{} answered {}": "{} 答复了 {}",
    }
)


def sentence(english: str, *values: object) -> Bilingual:
    """A sentence of the catalogue with these values in its `{}`, of a bilingual one the text in
    the same language. What is not in the catalogue is as it is.
    """
    zh = SENTENCES.get(english, in_chinese(english))
    if not values:
        return Bilingual(english, zh)
    inner = (in_chinese(one) if isinstance(one, str) else one for one in values)
    return Bilingual(english.format(*values), zh.format(*inner))


def describe_problem(problem: Problem) -> Bilingual:
    """What is wrong with a setting; in Chinese as far as the catalogue has it."""
    what = problem.what if isinstance(problem.what, Bilingual) else sentence(problem.what)
    return sentence("{} {}", problem.name, what)


def translate_error(text: str) -> Bilingual:
    """What the connection to a model or a source said, which knows of no catalogue."""
    return Bilingual(text, _of_connections(text))


def translate_mend(mend: Mend) -> Bilingual:
    """That of setup about a model."""
    return Bilingual(mend.en, mend.zh)
