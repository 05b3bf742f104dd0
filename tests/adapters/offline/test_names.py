"""Names inside of questions, by example."""

from __future__ import annotations

from adapters.offline.intents import asks_for_weather, find_cities, find_game
from tests.cases import each_case


@each_case(
    ("question", "cities"),
    [
        ("北京天气", "北京"),
        ("明天上海天气怎么样", "上海"),
        ("帮我查一下北京的天气", "北京"),
        ("今天深圳会下雨吗", "深圳"),
        ("上海明天的天气", "上海"),
        ("天气 北京", "北京"),
        ("天气预报：广州", "广州"),
        ("查询广州市天气预报", "广州市"),
        ("请问你能告诉我伦敦的天气吗", "伦敦"),
        ("我在北京，天气怎么样", "北京"),
        ("你好，北京天气", "北京"),
        ("东京现在气温多少度", "东京"),
        ("杭州这周末会不会下雨", "杭州"),
        ("北京的天气怎么样，适合出门吗", "北京"),
        ("London 天气", "London"),
        ("和田天气", "和田"),
        ("呼和浩特天气", "呼和浩特"),
        ("weather in London", "London"),
        ("what's the weather like in New York tomorrow?", "New York"),
        ("What's the weather for tomorrow in Paris?", "Paris"),
        ("London weather", "London"),
        ("London's weather", "London"),
        ("Weather London", "London"),
        ("will it rain in Paris today", "Paris"),
        ("is it snowing in Oslo", "Oslo"),
        ("the weather forecast for San Francisco please", "San Francisco"),
        ("tell me tomorrow's weather in Berlin", "Berlin"),
        ("weather in St. John's", "St. John's"),
        ("weather in 北京", "北京"),
        ("北京和上海的天气", "北京 上海"),
        ("北京、上海，北京天气", "北京 上海"),
        ("how is the weather in Tokyo and Osaka?", "Tokyo Osaka"),
        ("a、b、c、d、e 天气", "a b c d"),
    ],
)
def test_cities_are_found(question: str, cities: str) -> None:
    assert asks_for_weather(question)
    assert " ".join(find_cities(question)) == cities


@each_case(
    "question",
    [
        "天气怎么样",
        "今天天气真好",
        "这里天气如何",
        "天气，谢谢",
        "能查天气吗",
        "how's the weather",
        "what's the weather like today?",
        "What is the weather of today",
        "can you check the weather?",
        "我昨天和很多很多很多很多很多很多很多很多很多朋友聊起天气",
    ],
)
def test_no_city_is_invented(question: str) -> None:
    assert asks_for_weather(question)
    assert find_cities(question) == ()


@each_case("question", ["聊天气氛", "will you go", "北京", "rain"])
def test_weather_is_not_heard_everywhere(question: str) -> None:
    assert not asks_for_weather(question)


@each_case(
    ("question", "game"),
    [
        ("原神版本", "原神"),
        ("《原神》的版本号", "原神"),
        ("原神现在什么版本", "原神"),
        ("我的世界最新版本是多少", "我的世界"),
        ("查一下明日方舟的版本", "明日方舟"),
        ("我想知道我的世界的版本", "我的世界"),
        ("最新版本的原神", "原神"),
        ("版本 原神", "原神"),
        ("王者荣耀更新到什么版本了", "王者荣耀"),
        ("现在版本是多少", ""),
        ("minecraft version", "minecraft"),
        ("Genshin's version", "Genshin"),
        ("what's the latest version of Genshin Impact?", "Genshin Impact"),
        ("which version is Genshin on now", "Genshin"),
        ("can you tell me the minecraft version", "minecraft"),
        ("latest minecraft version please", "minecraft"),
        ("what version of Minecraft is out", "Minecraft"),
        ("version of dota 2", "dota 2"),
        ("which version?", ""),
    ],
)
def test_games_are_found(question: str, game: str) -> None:
    assert find_game(question) == game
