"""Group logs, made: 10 to 40 people in Chinese and English, several threads at once, in bursts of short lines, with
quotes, pictures, mentions and lines taken back; some lines are for the bot. The same seed is the same log.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

FIRST_PERSON = 2_834_560_000
LONG = 0.1  # of the lines: somebody tells something

NAMES = (
    *(
        "小明",
        "阿澈",
        "鱼丸",
        "今天也要早睡",
        "Kai",
        "momo",
        "林Lin",
        "老王",
        "Sunny",
        "糖醋排骨",
        "nini",
        "霜花",
        "Ray",
    ),
    *("大橘为重", "子衿", "Toby", "小明", "在下土豆", "Yuki", "咕咕鸽", "Alice", "清明上河兔", "Leo_", "momo", "十七"),
    *("半糖去冰", "Dr. K", "潜水员", "橙子", "阿飞", "Mira", "沉舟", "二楼的猫", "Zed", "南风", "蒜蓉", "Ivy", "喵呜"),
    *("老K", "群主本人"),
)
TOPICS: tuple[tuple[tuple[str, ...], ...], ...] = (
    (
        ("周六", "这周末", "明天下午", "国庆"),
        ("去香山", "去爬山", "吃火锅", "看展", "打羽毛球", "去密室"),
        ("去不去", "有人吗", "我报名", "缺一个", "太远了吧", "下雨怎么办", "几点集合", "那就老地方"),
    ),
    (
        ("这个报错", "昨天那个脚本", "CI", "docker 镜像", "第三题", "那个接口"),
        ("又挂了", "跑不起来", "超时了", "返回 502", "内存爆了", "只在我电脑上好使"),
        ("谁看一下", "重启试试", "我也是", "日志发一下", "换个版本就好了", "已经修了 等合并", "离谱"),
    ),
    (
        ("新番", "那本书", "昨晚的比赛", "这个版本", "下雪那关"),
        ("绝了", "看哭了", "不如第一季", "平衡做得稀烂", "最后五分钟", "居然没更新"),
        ("同意", "剧透退散", "等完结再看", "我笑死", "真的吗", "没看懂", "多少集啊"),
    ),
    (
        ("the new build", "my laptop", "that paper", "the train", "lunch"),
        ("is broken again", "was fine yesterday", "takes forever", "costs 40 now", "got cancelled"),
        ("anyone else?", "same here", "lol", "send me the link", "works for me", "maybe tomorrow", "wait what"),
    ),
    (
        ("猫", "隔壁的狗", "食堂", "房东", "耳机", "快递"),
        ("又来了", "涨价了", "坏了", "终于到了", "把我吵醒了", "丢了 3 天"),
        ("哈哈哈哈", "摸摸", "拍照", "多少钱", "？？？", "太真实了", "羡慕", "我也想要"),
    ),
)
QUESTIONS = (
    *("帮我总结一下刚才在说什么", "北京明天会下雨吗", "这个报错是什么意思", "香山几点关门", "给个快速排序的例子"),
    *(
        "他们定在哪天了",
        "what did they decide?",
        "translate the last line please",
        "推荐一部短一点的番",
        "502 一般查哪里",
    ),
    *("周六谁报名了", "how long does it take by train?", "刚才那张图是啥", "帮我想个昵称", "小明说的对吗"),
)
ANSWERS = (
    "刚才大家在商量周六的活动，还没定下来。",
    "明天多云，最高 12 度，傍晚可能有小雨，带把伞比较稳妥。",
    "先看网关的日志：502 多半是上游没有起来，或者超时太短。先直接请求上游的端口，确认它本身能不能回答，再看反向代理。",
    "They settled on Saturday at three, same place as last time; two people still have to confirm.",
    "可以试试这个思路：先选一个基准，把比它小的放左边、比它大的放右边，然后对两边分别做同样的事，直到只剩一个元素为止。",
    "嗯，我觉得他说得有道理，不过第二点要看版本：新版里这个开关默认是关的。",
)


@dataclass(frozen=True, slots=True)
class Line:
    """What somebody said: `at` is in seconds from the beginning. `quoted` is the place of an earlier line in the log,
    `mentions` somebody's number, `asks` whether it is for the bot. `taken_back` says how many lines later it is gone.
    """

    at: float
    user_id: int
    text: str
    asks: bool = False
    picture: bool = False
    quoted: int | None = None
    mentions: int | None = None
    taken_back: int | None = None


@dataclass(frozen=True, slots=True)
class Talk:
    """A log, and who speaks in it: numbers and names, of which some are alike."""

    people: dict[int, str]
    lines: tuple[Line, ...]


def make_talk(seed: int, *, lines: int = 1000, asked: float = 0.04) -> Talk:
    """A log of so many lines, of which this share is for the bot."""
    chance = random.Random(seed)
    number = chance.randint(10, 40)
    people = {FIRST_PERSON + 7919 * place: name for place, name in enumerate(chance.sample(NAMES, number))}
    writing = Writing(chance, tuple(people), asked)
    return Talk(people, tuple(islice(writing.lines(), lines)))


class Writing:
    """Writes a log without end: two to four threads side by side, each of few people, which end and make room."""

    def __init__(self, chance: random.Random, people: tuple[int, ...], asked: float) -> None:
        self._chance, self._people, self._asked = chance, people, asked
        self._threads = [self._thread() for _ in range(chance.randint(2, 4))]
        self._latest: list[int] = []  # places of what was said lately, to quote
        self._at = 0.0
        self._place = 0
        self._owed = 0.0  # questions that the share still asks for

    def _thread(self) -> tuple[tuple[tuple[str, ...], ...], list[int]]:
        return self._chance.choice(TOPICS), self._chance.sample(self._people, self._chance.randint(2, 5))

    def lines(self) -> Iterator[Line]:
        chance = self._chance
        while True:
            if chance.random() < 0.06:
                self._threads[chance.randrange(len(self._threads))] = self._thread()
            topic, people = chance.choice(self._threads)
            speaker = chance.choice(people)
            self._at += min(chance.expovariate(1 / 20), 1800) + (chance.random() < 0.004) * 8 * 3600
            for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):  # a burst
                self._at += chance.uniform(0.8, 3)
                yield self._line(topic, people, speaker)

    def _line(self, topic: tuple[tuple[str, ...], ...], people: list[int], speaker: int) -> Line:
        chance = self._chance
        self._owed += self._asked
        asks = self._owed >= 1 and chance.random() < 0.3
        self._owed -= asks
        parts = [chance.choice(words) for words in topic if chance.random() < 0.62] or [chance.choice(topic[2])]
        if chance.random() < LONG:
            parts += [" ".join(map(chance.choice, topic)) for _ in range(chance.randint(2, 6))]
        text = chance.choice(QUESTIONS) if asks else "，".join(parts) + chance.choice(("", "", "", "？", "!", " hhh"))
        others = [one for one in people if one != speaker]
        quoted = chance.choice(self._latest[-12:]) if self._latest and chance.random() < 0.1 else None
        line = Line(
            at=self._at,
            user_id=speaker,
            text=text,
            asks=asks,
            picture=not asks and chance.random() < 0.06,
            quoted=quoted,
            mentions=chance.choice(others) if others and not asks and chance.random() < 0.05 else None,
            taken_back=chance.randint(1, 12) if not asks and chance.random() < 0.012 else None,
        )
        self._latest = [*self._latest[-20:], self._place]
        self._place += 1
        return line
