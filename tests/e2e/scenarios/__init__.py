"""Conversations as scripts: who says what when, what must and must not be sent, what the model was
shown. Each `NN-name.yaml` here is one; NN is its number in the list of the specification, from 101
on they are our own; no two have the same. The whole service plays it, with the settings of production, over a real
websocket and a real database, on a clock that only the script advances: nobody waits, nothing is
measured. `python -m tests.e2e.scenarios 17` plays one and shows it as a chat.

    title: a sentence that says what is true
    of: memory                        # or summary, persona, command: in the second line, where it is of one
    begins: "23:59"                   # the time of day; 14:00 where nothing is said
    settings: {BOT_STEER: 0}          # as in .env; what is not named is as in production
    files: {fox/fox.md: 你是狐狸。}   # in a folder that settings call $FILES; [喵, 40000] is that often
    pages: {"https://a.example/": {title: 标题, text: 正文}}   # of a web of its own: `$WEB` in SEARCH_URL
    people: {管理: admin}             # besides 主人 (BOT_OWNERS), 小明, 阿澈, 小红
    model:                            # what the model answers, one for each request, in order
      - 周六吧                        # in words
      - call: {look_up: {word: 香山}}   # or by calls: a mapping, or a list of them; with `say` too
      - {say: 好, wait: 3}            # 3 s late; `hang: true` never; `fail: overloaded` an error
      - {say: 好, when: 几点}         # only for a request with that in its last message
      - {say: 好, always: true}       # whenever no other fits, any number of times
      - {say: 好, read: 400}          # the tokens of its request, 100 where nothing is said
    script:
      - 小明: "@bot 什么时候去"       # a line; @name mentions, @all mentions everybody
      - after: 5                      # 5 s pass (`at: 12`: until 12 s since the beginning), then
        sent: [周六吧]                # exactly these came since the last `sent`; []: nothing
      - 小明: {say: 几点, quote: bot} # quotes the bot's latest message, or that labelled so

A line of the script is done in this order: time passes, what is said and done happens as written,
everything settles (what is due now, not what is due later: thinking, debounce and pacing need
`after`), then it is looked at.

Who says something: a text, a list of parts, or a mapping: `say` (text or parts), `id` (a label for
it), `quote: label` (a number is an id as it stands), `private: true`, `group: 2` (the second group,
二群, with the same people). Parts are texts and mappings of one key: `picture: cat.png` and `sticker:
x.gif` (names that begin with `expired` cannot be had), `voice: words` or `voice: {says: words, seconds:
12}`, `file: {name: 作业.txt, text: ..., size: 9}` (in place of
`text`: `docx`, `xlsx`, `pptx`, `epub`, `pdf`, `zip`, `ole`, as in tests/adapters/media/office.py; `id: two`
beside another of that name; `until: 300`: cut off there), `card: {title: ..., description: ..., url: ...}` (or
its JSON), `face: 76`, `quote: label`, `at: name`, `forward: [{小明: 去吗}, {阿澈: {forward: [...]}}]`
(names of any people, any parts).

People are `name: role` (member, admin, owner: the bot's, stranger: no friend of the account) or a
mapping with `role`, `number`, `card`, `robot: true` (an official one).

`repeat: 40` and `every: 0.5` in a line: it happens so often, with the number of the time for `{n}`.

What happens: `recall: label` (or `{label: name of the operator}`), `mute: seconds`, `lift: true`,
`mute_all: true`, `lift_all: true`, `poke: name` (the bot; `{name: name}` each other), `type: name`, `react:
{name: label}`, `robot: {小冰: 20}` (another robot joins and answers each message of the bot's after a
second, so often), `restart: true` (a proper end and a new start; `restart: seconds` later), `write:
{fox.md: text}` (a file in $FILES), `reload: [words of the outcome]` (the files are read again), `drop:
true` and `back: true` (the connection), `fault: "timeout 2 times"` (as `!` lines in the simulator's chat),
`server: Lagrange` (or `unknown`), `other_ids: true` (histories tell messages under other ids than their events),
`report: true` (own messages are reported), `rename: {小明: 主人}` (the card in the group),
`promote: {bot: admin}` (a role in the group), `befriend: {老张: words}` (asks to be a friend), `invite: {小明: 6262}`
(the bot, into that group),
`apply: {老张: words}` (asks to join the group), `enter: name` or `[names]` (joins it; `{name: 300}`: told so late),
`leave: name` or `{name: kick}`, `lapse: true` (QQ forgets all that was asked),
`stand_still: seconds` (the process hears nobody meanwhile).

What is looked at: `sent` (a text, or a mapping of `say`, `has` (contains), `quotes: label`, `mentions:
[names]`, `to: name` (of a person or group), `forward: [texts of nodes]`, `id` (labels it)), `count` (how
many came since the last look, in place of `sent`), `gestures: [{reaction: label}, {typing: name}, {poke:
name}, {mute: name}, {card: name}, {recall: label}, {pin: label}, {friend: name}, {joined: name}, {admitted: name},
{refusal: name}]` (all
since the last look; `-label`: taken back), `requests` (how many were made since the
beginning), `cancelled: [numbers]` of requests given up, `shown: [...]` (in this order in the latest
request, or in that numbered `request`), `hidden: [...]`, `pictures: n` (seen in it), `asked: [names]`
(of the models that the latest requests went to), `visited: [queries and urls]` (searches and pages
since the beginning), `fetched: [names]`
(from the shelf with pictures and files, since the beginning), `heard: [words]` (voices made text).

`$SHELF` in a setting is the address of that shelf; it also takes voices, as STT_BASE_URL.

Tools of the scenarios are in `props`: look_up(word), take_time(seconds), hang(), wipe_disk(disk);
those of the service are there as always. A request that no answer is left for is wrong, and so is an
answer nobody asked for.
"""
