"""Rows for sites whose pages say little to a program: which URLs a row takes, which API or page it
asks, and how the answer becomes a `Document`. Loaded with the first page.

A row asks fixed hosts through the client of all pages, without a key or a cookie. Only numbers and
names of the URL enter its requests. HTML in an answer is parsed in the reader's process.

Sources: the table of each site says where its facts are from.
"""

from __future__ import annotations

import asyncio
import html
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Final, NamedTuple, TypeAlias
from urllib.parse import parse_qs, quote, unquote, urlsplit

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from bot.core.documents import Document, UnreadableDocument
from bot.core.language import CATALOGUE, Bilingual, Phrase, text_of
from frostagent.types.errors import Lack, ToolFailed
from tools.read_page.client import BadStatus, PageClient, one_line, read_json

logger = logging.getLogger(__name__)

CHINA: Final = timezone(timedelta(hours=8))
Whole: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""A number in an answer. A larger one is another schema: it has thousands of digits, perhaps."""
Count: TypeAlias = Whole | str | None
"""How many; a text if the site hides it, None if it does not say."""

LONGEST_LINE: Final = 2_000  # characters of one line of a description
MOST_TEXT: Final = 60_000  # characters of a description or of subtitles

NO_VIDEO: Final = Phrase("B 站说没有这个视频", "bilibili says that there is no such video")
HIDDEN_VIDEO: Final = Phrase(
    "B 站说这个视频现在看不了（审核中、隐藏或只有作者能看）",
    "bilibili says that this video cannot be seen now (in review, hidden or its author's alone)",
)
ANSWERED: Final = Phrase("B 站答复了 {code}：{words}", "bilibili answered {code}: {words}")
NEEDS_CHECK: Final = Phrase(
    "{site}要先验证是不是人，程序过不去",
    "{site} wants a person to pass a check first, which a program cannot",
)
WECHAT: Final = Bilingual("WeChat", "微信")
ZHIHU: Final = Bilingual("Zhihu", "知乎")
NO_ARTICLE: Final = Phrase(
    "微信说这篇文章已删除、违规或过期",
    "WeChat says that this article was deleted or blocked, or has expired",
)
CATALOGUE.register(__name__, globals())


class SiteRefused(ToolFailed):
    """The site says that there is nothing to read: its plain page would say no more."""


class SitePage(NamedTuple):
    """`url` is the address of the page for people."""

    url: str
    document: Document


@dataclass(frozen=True, slots=True)
class Site:
    """A row. `url` matches the whole of `host/path?query`, without `www.` and a last slash. `read`
    raises ToolFailed if the site refuses or its answer has another schema: then the plain page is
    read. It raises SiteRefused if that would not help.
    """

    name: str
    url: re.Pattern[str]
    read: Callable[[re.Match[str], PageClient], Awaitable[SitePage]]


Row: TypeAlias = tuple[Site, re.Match[str]]
"""A row that takes a URL, and what it found there."""


async def read_url(asked: str, client: PageClient, *, site_seconds: float) -> SitePage:
    """What is at this URL: by the row of its site or, if there is none or its API does not answer
    within that time as expected, as any other page. Raises ToolFailed.

    At most one row is asked: two and the page itself could take longer than the tool may.
    """
    row = find_site(asked)
    if row is not None and (page := await _read_by_row(row, client, site_seconds)):
        return page
    response = await client.fetch(asked)
    if row is None and response.url != asked:  # a short link, perhaps
        row = find_site(response.url)
        if row is not None and (page := await _read_by_row(row, client, site_seconds)):
            return page
    return SitePage(response.url, await client.read(response))


async def _read_by_row(row: Row, client: PageClient, seconds: float) -> SitePage | None:
    site, found = row
    try:
        async with asyncio.timeout(seconds):
            return await site.read(found, client)
    except SiteRefused:
        raise
    except (ToolFailed, TimeoutError) as error:
        why = str(error) or "it took too long"
        logger.info("the plain page is read instead: %s: %s", site.name, why)
        return None


def find_site(url: str) -> Row | None:
    """The row that takes this URL, with what it found there."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removeprefix("www."), parts.port
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or port not in {None, 80, 443} or "@" in parts.netloc:
        return None
    text = f"{host}{parts.path.rstrip('/')}{f'?{parts.query}' if parts.query else ''}"
    for site in SITES:
        if found := site.url.fullmatch(text):
            return site, found
    return None


# --- bilibili -------------------------------------------------------------------------------------
#
# github.com/SocialSisterYi/bilibili-API-collect, docs/video/info.md and player.md: fields, codes,
# and that subtitles are listed for most videos only after a login.

VIEW: Final = "https://api.bilibili.com/x/web-interface/view"
PLAYER: Final = "https://api.bilibili.com/x/player/wbi/v2"
SUBTITLE_HOST: Final = re.compile(r"(?:[a-z0-9-]+\.)*(?:hdslb|bilibili)\.com")
VIDEO_REFUSALS: Final = {
    **dict.fromkeys((-400, -404), NO_VIDEO),
    **dict.fromkeys((-403, 62002, 62003, 62004, 62012), HIDDEN_VIDEO),
}
MOST_PARTS: Final = 50
SUBTITLE_PARAGRAPH: Final = 300  # characters
UNWATCHED: Final = "bilibili video, not watched"  # told with each part and passage
NOT_WATCHED: Final = (
    "(Only this was read: nobody watched the video or read its subtitles. Do not describe what it "
    "shows.)"
)


class _Owner(Struct):
    name: str = ""


class _Statistics(Struct):
    view: Count = None
    danmaku: Count = None
    reply: Count = None
    favorite: Count = None
    coin: Count = None
    share: Count = None
    like: Count = None


class _Part(Struct):
    cid: Whole = 0
    page: Whole = 1
    part: str = ""
    duration: Whole | None = None


class _Subtitle(Struct):
    lan: str = ""
    lan_doc: str = ""
    subtitle_url: str | None = None


class _Subtitles(Struct):
    list: Sequence[_Subtitle] | None = None
    subtitles: Sequence[_Subtitle] | None = None


class _Video(Struct):
    bvid: str
    aid: Whole
    title: str
    owner: _Owner = field(default_factory=_Owner)
    stat: _Statistics = field(default_factory=_Statistics)
    desc: str | None = None
    tname: str | None = None
    pubdate: Whole = 0
    duration: Whole | None = None
    cid: Whole = 0
    pages: Sequence[_Part] | None = None
    subtitle: _Subtitles | None = None


class _VideoAnswer(Struct):
    code: Whole
    message: str | None = None
    data: _Video | None = None


class _PlayerData(Struct):
    subtitle: _Subtitles | None = None


class _PlayerAnswer(Struct):
    code: Whole
    data: _PlayerData | None = None


class _SubtitleLine(Struct):
    content: str
    start: float = field(default=0.0, name="from")


class _SubtitleFile(Struct):
    body: Sequence[_SubtitleLine]


async def _read_bilibili(found: re.Match[str], client: PageClient) -> SitePage:
    number = found["id"]
    is_old = number[:2].lower() == "av"
    asked = {"aid": number[2:]} if is_old else {"bvid": f"BV{number[2:]}"}
    answer = await client.json(VIEW, _VideoAnswer, params=asked)
    if answer.code in VIDEO_REFUSALS:
        raise SiteRefused(VIDEO_REFUSALS[answer.code].fill())
    if answer.code or answer.data is None:
        words = one_line(answer.message, 80)
        raise ToolFailed(ANSWERED.fill(code=answer.code, words=words))
    video = answer.data
    part = _chosen_part(video, found["query"] or "")
    subtitles = await _read_subtitles(video, part, client)
    document = Document(
        kind="bilibili video" if subtitles else UNWATCHED,
        title=one_line(video.title),
        author=one_line(video.owner.name),
        date=_day(video.pubdate),
        paragraphs=(*(() if subtitles else (NOT_WATCHED,)), *_video_facts(video), *subtitles),
    )
    # the address of what was asked for: an answer names no URL
    page = f"https://www.bilibili.com/video/{number[:2].lower() if is_old else 'BV'}{number[2:]}"
    return SitePage(f"{page}?p={part.page}" if part.page > 1 else page, document)


def _chosen_part(video: _Video, query: str) -> _Part:
    """The part that `p` in the URL's query names, else the first."""
    number = parse_qs(query).get("p", ["1"])[0]
    parts = video.pages or (_Part(cid=video.cid),)
    return next((one for one in parts if str(one.page) == number), parts[0])


def _video_facts(video: _Video) -> list[str]:
    stat = video.stat
    counts = {
        "views": stat.view,
        "likes": stat.like,
        "coins": stat.coin,
        "favourites": stat.favorite,
        "shares": stat.share,
        "comments": stat.reply,
        "danmaku": stat.danmaku,
    }
    told = [f"{_number(count)} {name}" for name, count in counts.items() if count is not None]
    facts = _fields(Statistics=", ".join(told))
    length = None if video.duration is None else _length(video.duration)
    facts += filter(None, [". ".join(_fields(Length=length, Category=video.tname))])
    facts += ["# Description", *(_lines(video.desc) or ("(none)",))]
    if video.pages and len(video.pages) > 1:
        facts.append(f"# Parts ({len(video.pages)})")
        facts += [
            f"{one.page}. {one_line(one.part, 100)}"
            + ("" if one.duration is None else f" ({_length(one.duration)})")
            for one in video.pages[:MOST_PARTS]
        ]
    return facts


async def _read_subtitles(video: _Video, part: _Part, client: PageClient) -> tuple[str, ...]:
    """The subtitles of a part in paragraphs, each with its time; empty if none are public."""
    listed = video.subtitle.list or () if video.subtitle else ()
    if part.cid != video.cid or not any(one.subtitle_url for one in listed):
        try:
            asked = {"aid": str(video.aid), "cid": str(part.cid)}
            answer = await client.json(PLAYER, _PlayerAnswer, params=asked)
        except ToolFailed:
            return ()
        told = answer.data.subtitle if answer.data else None
        listed = told.subtitles or () if told else ()
    named = [one for one in listed if _subtitle_url(one)]
    if not named:
        return ()
    # Chinese first, and what a person wrote before what a machine heard
    best = min(named, key=lambda one: ("zh" not in one.lan, one.lan.startswith("ai-")))
    try:
        file = await client.json(_subtitle_url(best), _SubtitleFile)
    except ToolFailed:
        return ()
    heading = f"# Subtitles: {one_line(best.lan_doc or best.lan, 40)}"
    if part.page > 1:
        heading += f" (part {part.page})"
    return (heading, *_spoken(file.body)) if file.body else ()


def _subtitle_url(subtitle: _Subtitle) -> str:
    """Its address; empty if it is none of bilibili's."""
    told = subtitle.subtitle_url or ""
    url = f"https:{told}" if told.startswith("//") else told
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    is_theirs = SUBTITLE_HOST.fullmatch(parts.netloc) and parts.scheme in {"http", "https"}
    return url if is_theirs else ""


def _spoken(lines: Iterable[_SubtitleLine]) -> list[str]:
    paragraphs, room = list[str](), MOST_TEXT
    open_ = ""
    for line in lines:
        words = one_line(line.content, 500)
        if not words:
            continue
        if open_ and len(open_) + len(words) > SUBTITLE_PARAGRAPH:
            paragraphs.append(open_)
            room -= len(open_)
            open_ = ""
            if room <= 0:
                return paragraphs
        open_ = f"{open_} {words}" if open_ else f"[{_length(line.start)}] {words}"
    return [*paragraphs, open_] if open_ else paragraphs


# --- GitHub ---------------------------------------------------------------------------------------
#
# docs.github.com/en/rest has a page for each: repositories, their README, releases, issues (which
# pull requests are, too) and comments. The media type `html` renders what people wrote. Without a
# key GitHub answers 60 requests an hour.

GITHUB: Final = "https://api.github.com/repos"
GITHUB_JSON: Final = "application/vnd.github.html+json"
MOST_COMMENTS: Final = 5
MOST_ASSETS: Final = 20
UNREAD: Final = "(cannot be read: {why})"
REMARK: Final = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)


class _User(Struct):
    login: str = ""


class _Licence(Struct):
    name: str = ""


class _Repository(Struct):
    full_name: str
    description: str | None = None
    homepage: str | None = None
    language: str | None = None
    license: _Licence | None = None
    topics: Sequence[str] = ()
    stargazers_count: Count = None
    forks_count: Count = None
    open_issues_count: Count = None
    created_at: str | None = None
    pushed_at: str | None = None
    archived: bool = False


class _Written(Struct):
    """What somebody wrote: rendered, and as it was written."""

    user: _User | None = None
    created_at: str | None = None
    body_html: str | None = None
    body: str | None = None


class _Asset(Struct):
    name: str
    size: Whole = 0
    download_count: Whole = 0


class _Release(Struct):
    tag_name: str
    name: str | None = None
    author: _User | None = None
    published_at: str | None = None
    prerelease: bool = False
    assets: Sequence[_Asset] = ()
    body_html: str | None = None
    body: str | None = None


class _Label(Struct):
    name: str | None = None


class _PullRequest(Struct):
    merged_at: str | None = None


class _Issue(_Written, kw_only=True):
    title: str
    state: str = ""
    state_reason: str | None = None
    comments: Whole = 0
    labels: Sequence[_Label] = ()
    pull_request: _PullRequest | None = None


async def _read_repository(found: re.Match[str], client: PageClient) -> SitePage:
    name = _repository(found)
    repository = await client.json(f"{GITHUB}/{name}", _Repository, accept=GITHUB_JSON)
    facts = [
        one_line(repository.description, 500),
        _counts({"Stars": repository.stargazers_count, "Forks": repository.forks_count}),
        _counts({"Open issues and pull requests": repository.open_issues_count}),
        *_fields(
            Language=repository.language,
            Licence=repository.license.name if repository.license else "",
            Topics=", ".join(repository.topics),
            Website=repository.homepage,
            Since=(repository.created_at or "")[:10],
            Archived="yes, nothing changes any more" if repository.archived else "",
        ),
        "# README",
        *(await _read_readme(name, client) or ("(none)",)),
    ]
    document = Document(
        kind="GitHub repository",
        title=one_line(repository.full_name),
        author=found["owner"],
        date=one_line(repository.pushed_at)[:10],
        paragraphs=tuple(filter(None, facts)),
    )
    return SitePage(f"https://github.com/{name}", document)


async def _read_readme(name: str, client: PageClient) -> tuple[str, ...]:
    try:
        response = await client.get(f"{GITHUB}/{name}/readme", accept=GITHUB_JSON)
        return (await client.read_html(response.body)).paragraphs
    except ToolFailed as error:  # the rest is worth telling
        if isinstance(error, BadStatus) and error.status == 404:
            return ()
        return (UNREAD.format(why=error),)


async def _read_release(found: re.Match[str], client: PageClient) -> SitePage:
    name, tag = _repository(found), unquote(found["tag"] or "")
    which = f"tags/{quote(tag, safe='')}" if tag else "latest"
    release = await client.json(f"{GITHUB}/{name}/releases/{which}", _Release, accept=GITHUB_JSON)
    shown = release.assets[:MOST_ASSETS]
    assets = [
        f"- {one_line(one.name, 100)}: {one.size / 1e6:,.1f} MB, "
        f"downloaded {_number(one.download_count)} times"
        for one in shown
    ]
    if len(release.assets) > len(shown):
        assets.append(f"- and {len(release.assets) - len(shown)} more")
    document = Document(
        kind="GitHub release",
        title=one_line(f"{name} {release.name or release.tag_name}"),
        author=one_line(release.author.login if release.author else ""),
        date=one_line(release.published_at)[:10],
        paragraphs=(
            *_fields(
                Tag=release.tag_name,
                Latest="" if tag else "yes",
                Prerelease="yes" if release.prerelease else "",
            ),
            "# What it says",
            *(await _written(release.body_html, release.body, client) or ("(nothing)",)),
            *(("# Files", *assets) if assets else ()),
        ),
    )
    return SitePage(
        f"https://github.com/{name}/releases/tag/{quote(release.tag_name, safe='')}", document
    )


async def _read_issue(found: re.Match[str], client: PageClient) -> SitePage:
    name, number = _repository(found), found["number"]
    issue = await client.json(f"{GITHUB}/{name}/issues/{number}", _Issue, accept=GITHUB_JSON)
    comments: Sequence[_Written] = ()
    refused = ""
    if issue.comments:
        try:
            comments = await client.json(
                f"{GITHUB}/{name}/issues/{number}/comments",
                list[_Written],
                params={"per_page": str(MOST_COMMENTS)},
                accept=GITHUB_JSON,
            )
        except ToolFailed as error:
            refused = f": {error}"
    is_pull = issue.pull_request is not None
    state = issue.state_reason or issue.state
    if issue.pull_request and issue.pull_request.merged_at:
        state = f"merged on {issue.pull_request.merged_at[:10]}"
    paragraphs = [
        *_fields(
            State=state.replace("_", " "),
            Labels=", ".join(one.name or "" for one in issue.labels),
            Comments=str(issue.comments),
        ),
        "# What it says",
        *(await _written(issue.body_html, issue.body, client) or ("(nothing)",)),
    ]
    for one in comments[:MOST_COMMENTS]:
        who = one_line(one.user.login if one.user else "")
        paragraphs.append(f"# Comment of {who} on {one_line(one.created_at)[:10]}")
        paragraphs += await _written(one.body_html, one.body, client) or ("(nothing)",)
    if (left := issue.comments - len(comments[:MOST_COMMENTS])) > 0:
        paragraphs.append(f"({left} more comments are not shown{refused})")
    document = Document(
        kind="GitHub pull request" if is_pull else "GitHub issue",
        title=one_line(f"{issue.title} · {name}#{number}"),
        author=one_line(issue.user.login if issue.user else ""),
        date=one_line(issue.created_at)[:10],
        paragraphs=tuple(paragraphs),
    )
    return SitePage(
        f"https://github.com/{name}/{'pull' if is_pull else 'issues'}/{number}", document
    )


async def _written(body_html: str | None, body: str | None, client: PageClient) -> tuple[str, ...]:
    """The paragraphs of what somebody wrote: rendered, else as it was written; why, if it cannot be
    read. Empty if nothing of it is seen.
    """
    if body_html:
        try:
            return (await client.read_html(body_html)).paragraphs
        except UnreadableDocument as error:
            return () if error.lack is Lack.EMPTY else (UNREAD.format(why=error),)
    return tuple(_lines(REMARK.sub("", body or "")))


def _repository(found: re.Match[str]) -> str:
    """`owner/name`."""
    return f"{found['owner']}/{found['repo'].removesuffix('.git')}"


# --- Zhihu ----------------------------------------------------------------------------------------
#
# github.com/DIYgod/RSSHub and jackwener/OpenCLI (pull request 1528): the API and its `include`,
# which often refuses visitors without a cookie; what is in `js-initialData` of the page, in camel
# case, is the same.

POSTS: Final = "https://www.zhihu.com/api/v4"
INCLUDE: Final = "content,voteup_count,comment_count,created_time,created,author,question,title"
ZHIHU_HOSTS: Final = frozenset({"www.zhihu.com", "zhuanlan.zhihu.com"})
INITIAL: Final = b'id="js-initialData"'


class _Question(Struct):
    title: str = ""


class _Post(Struct):
    content: str
    title: str = ""
    author: _Owner | None = None
    question: _Question | None = None


class _ApiPost(_Post):
    voteup_count: Count = None
    comment_count: Count = None
    created_time: Whole = 0  # of an answer
    created: Whole = 0  # of an article


class _PagePost(_Post):
    voteup_count: Count = field(default=None, name="voteupCount")
    comment_count: Count = field(default=None, name="commentCount")
    created_time: Whole = field(default=0, name="createdTime")
    created: Whole = 0


class _Entities(Struct):
    answers: dict[str, _PagePost] = field(default_factory=dict)
    articles: dict[str, _PagePost] = field(default_factory=dict)


class _InitialState(Struct):
    entities: _Entities


class _InitialData(Struct):
    state: _InitialState = field(name="initialState")


async def _read_zhihu(found: re.Match[str], client: PageClient) -> SitePage:
    answer, article = found["answer"], found["article"]
    kind, number = ("answers", answer) if answer else ("articles", article)
    question = f"question/{found['question']}/" if found["question"] else ""
    page = (
        f"https://www.zhihu.com/{question}answer/{answer}"
        if answer
        else f"https://zhuanlan.zhihu.com/p/{article}"
    )
    post: _ApiPost | _PagePost | None
    try:
        post = await client.json(f"{POSTS}/{kind}/{number}", _ApiPost, params={"include": INCLUDE})
    except ToolFailed:
        post = None
    if post is None or not post.content:
        try:
            response = await client.get(page)
        except ToolFailed as error:
            raise SiteRefused(text_of(error)) from error
        led = urlsplit(response.url)
        is_theirs = led.hostname in ZHIHU_HOSTS
        if is_theirs and led.path.startswith("/account/"):
            raise SiteRefused(NEEDS_CHECK.fill(site=ZHIHU))
        post = _initial_post(response.body, kind, number) if is_theirs else None
        if post is None:
            return SitePage(response.url, await client.read(response))
    written = await client.read_html(f"<article>{post.content}</article>")
    title = post.title or (post.question.title if post.question else "")
    counts = _counts({"Upvotes": post.voteup_count, "Comments": post.comment_count})
    document = Document(
        kind="Zhihu answer" if answer else "Zhihu article",
        title=one_line(title),
        author=one_line(post.author.name if post.author else ""),
        date=_day(post.created_time or post.created),
        paragraphs=tuple(filter(None, (counts, *written.paragraphs))),
        is_cut=written.is_cut,
    )
    return SitePage(page, document)


def _initial_post(body: bytes, kind: str, number: str) -> _PagePost | None:
    """The post in the data that the page brings for its scripts; None if it is not there."""
    _, _, script = body.partition(INITIAL)
    told = script.partition(b">")[2].partition(b"</script>")[0]
    try:
        entities = read_json(told, _InitialData, host="www.zhihu.com").state.entities
    except ToolFailed:
        return None
    return (entities.answers if kind == "answers" else entities.articles).get(number)


# --- WeChat ---------------------------------------------------------------------------------------
#
# github.com/DIYgod/RSSHub, lib/utils/wechat-mp.ts: `ct`, `js_content`; `js_name`, `nickname` and
# the sentences of refusals are what public readers of these pages look for.

WECHAT_HOST: Final = "mp.weixin.qq.com"
ARTICLE: Final = b'id="js_content"'
LONGEST_TAG: Final = 2_000  # bytes
STYLE: Final = re.compile(rb'\sstyle="[^"]*"')
ACCOUNTS: Final = (
    re.compile(rb'\bid="js_name"[^>]{0,200}>\s{0,40}([^<]{1,100})<'),
    re.compile(rb"\bvar\s{1,9}nickname\s{0,9}=\s{0,9}(?:htmlDecode\()?[\"']([^\"'\n]{1,100})[\"']"),
    re.compile(rb"\bnick_name\s{0,9}:\s{0,9}(?:JsDecode\()?'([^'\n]{1,100})'"),
)
WRITTEN_AT: Final = re.compile(rb"\bvar\s{1,9}ct\s{0,9}=\s{0,9}[\"']?(\d{10})\b")
CHECKS: Final = tuple(word.encode() for word in ("环境异常", "完成验证", "访问过于频繁"))
NO_LONGER: Final = tuple(
    word.encode()
    for word in ("已被发布者删除", "因违规无法查看", "因违规已删除", "链接已过期", "内容无法查看")
)


async def _read_wechat(found: re.Match[str], client: PageClient) -> SitePage:
    url = f"https://{found[0]}"
    try:
        response = await client.get(url)
    except ToolFailed as error:
        raise SiteRefused(text_of(error)) from error
    body, led = response.body, urlsplit(response.url)
    if led.hostname != WECHAT_HOST:
        return SitePage(response.url, await client.read(response))
    if ARTICLE not in body:
        if "captcha" in led.path or any(word in body for word in CHECKS):
            raise SiteRefused(NEEDS_CHECK.fill(site=WECHAT))
        if any(word in body for word in NO_LONGER):
            raise SiteRefused(NO_ARTICLE.fill())
        return SitePage(response.url, await client.read(response))
    document = await client.read_html(_shown(body))
    found_names = (one[1] for pattern in ACCOUNTS if (one := pattern.search(body)))
    account = html.unescape(next(found_names, b"").decode("utf-8", "replace"))
    written_at = WRITTEN_AT.search(body)
    writers = dict.fromkeys(filter(None, (one_line(account), document.author)))
    return SitePage(
        url,
        replace(
            document,
            kind="WeChat article",
            author=" / ".join(writers),
            date=_day(int(written_at[1])) if written_at else document.date,
        ),
    )


def _shown(body: bytes) -> bytes:
    """The page with its article shown, which a script does otherwise. The reader would take all
    that is hidden on the page for text if it found next to none.
    """
    at = body.index(ARTICLE)
    begin = body.rfind(b"<", max(0, at - LONGEST_TAG), at)
    end = body.find(b">", at, at + LONGEST_TAG)
    if min(begin, end) < 0:
        return body
    return body[:begin] + STYLE.sub(b"", body[begin:end]) + body[end:]


# --- the rows -------------------------------------------------------------------------------------

REPOSITORY: Final = (
    r"github\.com/(?P<owner>[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/"
    r"(?P<repo>(?!\.+(?:git)?(?:[/?]|$))[\w.-]{1,100})"  # not `..`, which leads elsewhere
)
QUERY: Final = r"(?:\?(?P<query>.*))?"

SITES: Final = (
    Site(
        "bilibili",
        re.compile(
            r"(?:(?:m\.)?bilibili\.com(?:/video)?|b23\.tv)/"
            rf"(?P<id>[Bb][Vv][A-Za-z0-9]{{10}}|[Aa][Vv]\d{{1,15}}){QUERY}",
            re.ASCII,
        ),
        _read_bilibili,
    ),
    Site("GitHub repository", re.compile(f"{REPOSITORY}{QUERY}", re.ASCII), _read_repository),
    Site(
        "GitHub release",
        re.compile(
            rf"{REPOSITORY}/releases(?:/latest|/tag/(?P<tag>[\w.+@%/-]{{1,200}}))?{QUERY}",
            re.ASCII,
        ),
        _read_release,
    ),
    Site(
        "GitHub issue",
        re.compile(
            rf"{REPOSITORY}/(?:issues|pull)/(?P<number>\d{{1,9}})(?:/(?:files|commits))?{QUERY}",
            re.ASCII,
        ),
        _read_issue,
    ),
    Site(
        "Zhihu",
        re.compile(
            r"(?:zhihu\.com/(?:question/(?P<question>\d{1,20})/)?answer/(?P<answer>\d{1,20})|"
            rf"(?:zhuanlan\.)?zhihu\.com/p/(?P<article>\d{{1,20}})){QUERY}",
            re.ASCII,
        ),
        _read_zhihu,
    ),
    Site(
        "WeChat",
        re.compile(r"mp\.weixin\.qq\.com/s(?:/[\w-]{1,64}(?:\?.*)?|\?.*)", re.ASCII),
        _read_wechat,
    ),
)
"""The first row that takes a URL reads it."""


# --- texts ----------------------------------------------------------------------------------------


def _lines(text: str | None) -> list[str]:
    """The lines of plain text that are not blank."""
    lines = (one_line(line, LONGEST_LINE) for line in (text or "")[:MOST_TEXT].splitlines())
    return [line for line in lines if line]


def _fields(**values: str | None) -> list[str]:
    lines = {name: one_line(value, 300) for name, value in values.items()}
    return [f"{name}: {value}" for name, value in lines.items() if value]


def _counts(values: Mapping[str, Count]) -> str:
    """The known counts in one line; empty if there are none."""
    known = {name: value for name, value in values.items() if value is not None}
    return " ".join(f"{name}: {_number(value)}." for name, value in known.items())


def _number(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) else one_line(value, 20)


def _length(seconds: float) -> str:
    """As h:mm:ss, or m:ss."""
    minutes, rest = divmod(int(min(max(seconds, 0), 10**7)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _day(moment: int) -> str:
    """The day in China of a time in seconds since 1970; empty for one that is none."""
    if not 0 < moment < 10**10:
        return ""
    return datetime.fromtimestamp(moment, UTC).astimezone(CHINA).strftime("%Y-%m-%d")
