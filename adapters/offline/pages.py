"""The pages of the demo's web, written for it: title, date and text by URL. GitHub is not among
them: `get_game_version` asks it, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PAGES: Mapping[str, tuple[str, str, str]] = {
    "https://almanac.example/shuangjiang": (
        "霜降：秋季的最后一个节气",
        "2026-10-23",
        (
            "霜降是二十四节气中的第十八个，也是秋季的最后一个，在每年公历十月二十三日前后。\n"
            "# 由来\n"
            "这时天气渐冷，夜里地面的水汽凝成霜，所以叫霜降。古书说：气肃而凝，露结为霜矣。\n"
            "# 三候\n"
            "一候豺乃祭兽，二候草木黄落，三候蛰虫咸俯。\n"
            "# 习俗\n"
            "各地有吃柿子、赏菊、登高的习俗。民间说霜降吃柿子，冬天不会感冒，流鼻涕也少。\n"
            "# 农事\n"
            "北方收完了秋，开始翻地；南方正忙着种早茬麦、栽早茬油菜，还要拔棉秸、收甘薯。"
        ),
    ),
    "https://almanac.example/solar-terms": (
        "二十四节气表",
        "2026-01-05",
        (
            "二十四节气从立春开始，到大寒结束，每个月两个。\n"
            "# 春\n立春、雨水、惊蛰、春分、清明、谷雨。\n"
            "# 夏\n立夏、小满、芒种、夏至、小暑、大暑。\n"
            "# 秋\n立秋、处暑、白露、秋分、寒露、霜降。\n"
            "# 冬\n立冬、小雪、大雪、冬至、小寒、大寒。\n"
            "2016 年，二十四节气列入联合国教科文组织的非物质文化遗产名录。"
        ),
    ),
    "https://kitchen.example/shuangjiang": (
        "霜降吃什么：柿子、萝卜和牛肉",
        "2026-10-20",
        (
            "霜降前后，各地讲究进补，有“补冬不如补霜降”的说法。\n"
            "# 柿子\n霜打过的柿子最甜。空腹不要多吃，也不要和螃蟹一起吃。\n"
            "# 萝卜\n山东人说：处暑高粱，白露谷，霜降到了拔萝卜。\n"
            "# 牛肉\n广西玉林这天早餐吃牛河炒粉，午餐和晚餐吃牛肉炒萝卜。"
        ),
    ),
    "https://kitchen.example/osmanthus-cake": (
        "桂花糕怎么做不会塌",
        "2026-09-18",
        (
            "桂花糕要用糯米粉和粘米粉，比例是三比二，加糖和温水拌成能捏成团的湿粉。\n"
            "# 过筛\n湿粉一定要过筛两遍，蒸出来才松软，不会塌。\n"
            "# 蒸\n水开以后大火蒸二十五分钟，关火焖五分钟，撒上干桂花和蜂蜜。\n"
            "# 保存\n当天吃最好，冷藏可以放两天，吃之前再蒸三分钟。"
        ),
    ),
    "https://pets.example/why-cats-purr": (
        "Why cats purr",
        "2026-05-11",
        (
            "Cats purr when they are content, and also when they are hurt or afraid.\n"
            "# How\nThe muscles of the larynx open and close the glottis some 25 to 150 times a "
            "second, while the cat breathes in and out.\n"
            "# Why\nKittens purr from their second day on, so that their mother finds them. Grown "
            "cats purr to ask for food or company, and to calm themselves."
        ),
    ),
    "https://vet.example/purring": (
        "What purring tells a vet",
        "2026-03-02",
        (
            "A cat that purrs on the examination table is not always at ease.\n"
            "# Signs\nCats that purr, hide and do not eat for a day should be seen by a vet."
        ),
    ),
    "https://library.example/cats": (
        "Cats, large and small",
        "2025-11-20",
        (
            "Lions roar and cannot purr as house cats do; cheetahs purr and cannot roar.\n"
            "# Why\nThe bone at the root of the tongue is stiff in cats that purr."
        ),
    ),
    "https://pets.example/hulu": (
        "猫为什么会打呼噜",
        "2026-05-12",
        (
            "猫满足的时候会打呼噜，受伤或害怕的时候也会。\n"
            "# 怎么发出来\n喉部的肌肉每秒开合声门二十五到一百五十次，吸气和呼气时都响。\n"
            "# 为什么\n小猫出生第二天就会打呼噜，好让母猫找到它；"
            "大猫用它讨吃的，也用来安抚自己。"
        ),
    ),
}

SITES: Mapping[str, Any] = {
    "https://api.bilibili.com/x/web-interface/view?bvid=BV1FrostDem0": {
        "code": 0,
        "message": "0",
        "data": {
            "bvid": "BV1FrostDem0",
            "aid": 100,
            "cid": 1000,
            "title": "三分钟看懂霜降",
            "desc": "霜降是怎么来的，这一天各地吃什么。\n讲到了柿子、鸭子和牛肉。",
            "owner": {"name": "历书小屋"},
            "tname": "科学科普",
            "pubdate": 1_792_713_600,
            "duration": 186,
            "stat": {"view": 20_815, "danmaku": 96, "reply": 153, "like": 1_847, "coin": 402},
        },
    },
    "https://api.bilibili.com/x/player/wbi/v2": {
        "code": 0,
        "data": {
            "subtitle": {
                "subtitles": [
                    {"lan": "zh", "lan_doc": "中文", "subtitle_url": "//i0.hdslb.com/bfs/demo.json"}
                ]
            }
        },
    },
    "https://i0.hdslb.com/bfs/demo.json": {
        "body": [
            {"from": 0.0, "content": "霜降是秋天的最后一个节气"},
            {"from": 3.2, "content": "这天以后，北方的早晨就能看见霜了"},
            {"from": 7.5, "content": "闽南人说，补冬不如补霜降，要吃鸭子"},
        ]
    },
    "https://www.zhihu.com/api/v4/answers/100": {
        "content": "<p>因为霜降前后柿子熟透，皮薄肉多。吃柿子防感冒是老话，没有研究能证明。</p>",
        "voteup_count": 318,
        "comment_count": 27,
        "created_time": 1_792_713_600,
        "author": {"name": "种柿子的人"},
        "question": {"title": "霜降为什么要吃柿子？"},
    },
    "https://mp.weixin.qq.com/s/frost-demo": (
        '<html><head><meta property="og:title" content="柿子怎么挑"></head><body>'
        '<a id="js_name">果园周报</a><div id="js_content" style="visibility: hidden;">'
        "<p>挑柿子先看蒂：蒂绿、贴得紧的新鲜。再捏一捏，软而不塌的当天吃，硬的放一周。</p></div>"
        '<script>var ct = "1792713600";</script></body></html>'
    ),
}
"""What particular sites answer: JSON of an API, or a page, by URL. Other links to these sites are
not found in the demo.
"""
