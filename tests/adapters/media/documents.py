"""Documents of our own making: honest ones, and those made to trick a reader, none larger than 5 MB."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence

HONEST = """<!doctype html><html><head><title>霜降 - 历书</title><meta name="author" content="老王">
<meta property="article:published_time" content="2026-10-23T08:00:00+08:00"></head><body>
<header><h1>历书网</h1></header><nav><a href="/">首页</a> <a href="/b">节气</a></nav>
<div class="side"><ul><li><a href="x">立春的由来</a></li><li><a href="y">雨水的由来</a></li></ul></div>
<article><h1>霜降是第几个节气</h1>
<p>霜降是二十四节气中的第十八个，是秋季的最后一个节气，在十月二十三日前后。</p>
<h2>由来</h2>
<p>这个时节<b>天气渐冷</b>，初霜<a href="z">出现</a>，所以叫霜降，古人说气肃而凝，露结为霜。<br>第二行。</p>
<table><tr><th>年</th><th>日期</th></tr><tr><td>2025</td><td>10月23日</td></tr></table>
<pre>if cold:
    frost()</pre><ul><li>吃柿子</li><li>赏菊</li></ul></article>
<footer>版权所有，联系我们，友情链接，备案号</footer><script>alert("x")</script></body></html>"""


# --- PDF ------------------------------------------------------------------------------------------


def stream(data: bytes, extra: str = "", *, length: int | None = None) -> bytes:
    size = len(data) if length is None else length
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (size, extra.encode(), data)


def pdf_of(objects: Mapping[int, bytes | str], trailer: str = "/Root 1 0 R", *, prev: bool = False) -> bytes:
    """A PDF with these objects; with `prev` its table of objects says that it continues itself."""
    out, places = bytearray(b"%PDF-1.7\n"), dict[int, int]()
    for number, body in objects.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body if isinstance(body, bytes) else body.encode("latin-1"))
    table, size = len(out), max(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        out += b"%010d 00000 %s \n" % (places.get(number, 0), b"n" if number in places else b"f")
    more = f" /Prev {table}" if prev else ""
    return bytes(out) + f"trailer\n<< /Size {size} {trailer}{more} >>\nstartxref\n{table}\n%%EOF\n".encode()


FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
CATALOGUE = "<< /Type /Catalog /Pages 2 0 R >>"


def page(contents: int, parent: int = 2, more: str = "") -> str:
    resources = f"/Resources << /Font << /F1 4 0 R >> {more} >>"
    return f"<< /Type /Page /Parent {parent} 0 R /MediaBox [0 0 300 300] {resources} /Contents {contents} 0 R >>"


def text_pdf(*pages: str, info: str = "") -> bytes:
    """A PDF with a line of Latin text on each page."""
    numbers = range(10, 10 + 2 * len(pages), 2)
    objects: dict[int, bytes | str] = {1: CATALOGUE, 4: FONT}
    objects[2] = f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(f'{n} 0 R' for n in numbers)}] >>"
    for number, words in zip(numbers, pages, strict=True):
        objects[number] = page(number + 1)
        objects[number + 1] = stream(f"BT /F1 12 Tf 20 200 Td ({words}) Tj ET".encode("latin-1"))
    if info:
        objects[3] = info
    return pdf_of(objects, "/Root 1 0 R" + (" /Info 3 0 R" if info else ""))


def one_page(content: bytes, *, more: str = "", **others: bytes | str) -> bytes:
    """A PDF of one page with this content stream, already as an object; others are `o7=` and so on."""
    objects: dict[int, bytes | str] = {
        1: CATALOGUE, 2: "<< /Type /Pages /Count 1 /Kids [3 0 R] >>", 3: page(5, more=more), 4: FONT, 5: content,
    }  # fmt: skip
    return pdf_of(objects | {int(name[1:]): body for name, body in others.items()})


def zeros(megabytes: int) -> bytes:
    packer = zlib.compressobj(9)
    return b"".join([packer.compress(bytes(2**20)) for _ in range(megabytes)]) + packer.flush()


HELLO = b"BT /F1 12 Tf 20 200 Td (hello) Tj ET"
ENCRYPT = f"<< /Filter /Standard /V 1 /R 2 /P -4 /O <{'41' * 32}> /U <{'42' * 32}> >>"


def _loop_of_pages() -> bytes:
    kids = "<< /Type /Pages /Count 2 /Kids [2 0 R 3 0 R] >>"
    return pdf_of({1: CATALOGUE, 2: kids, 3: "<< /Type /Pages /Parent 2 0 R /Count 1 /Kids [2 0 R] >>"})


def _encrypted() -> bytes:
    objects: dict[int, bytes | str] = {
        1: CATALOGUE, 2: "<< /Type /Pages /Count 1 /Kids [3 0 R] >>", 3: page(5), 4: FONT, 5: stream(HELLO), 6: ENCRYPT,
    }  # fmt: skip
    return pdf_of(objects, "/Root 1 0 R /Encrypt 6 0 R /ID [<00> <00>]")


HOSTILE_PDFS: Mapping[str, Callable[[], bytes]] = {
    "a stream of 300 MB in 300 kB": lambda: one_page(stream(zeros(300), "/Filter /FlateDecode")),
    "a stream packed twice": lambda: one_page(
        stream(zlib.compress(zeros(200), 9), "/Filter [/FlateDecode /FlateDecode]")
    ),
    "pages that contain themselves": _loop_of_pages,
    "10,000 pages": lambda: text_pdf(*(f"page {number}" for number in range(10_000))),
    "a page count of a billion": lambda: pdf_of(
        {1: CATALOGUE, 2: "<< /Type /Pages /Count 1000000000 /Kids [3 0 R] >>", 3: page(5), 4: FONT, 5: stream(HELLO)}
    ),
    "encrypted with a password": _encrypted,
    "a table of objects that continues itself": lambda: pdf_of({1: CATALOGUE, 2: "<< /Kids [] >>"}, prev=True),
    "arrays nested 200,000 deep": lambda: pdf_of({1: CATALOGUE, 2: "[" * 200_000 + "]" * 200_000}),
    "dictionaries nested 100,000 deep": lambda: pdf_of({1: CATALOGUE, 2: "<< /A " * 100_000 + ">>" * 100_000}),
    "cut off in the middle": lambda: text_pdf("hello")[:300],
    "nothing but its first line": lambda: b"%PDF-1.7\n" + bytes(range(256)) * 1000,
    "a stream that says it has 99 GB": lambda: one_page(stream(HELLO, length=99_000_000_000)),
    "a form that draws itself": lambda: one_page(
        stream(b"/X Do"), more="/XObject << /X 6 0 R >>",
        o6=stream(b"/X Do", "/Type /XObject /Subtype /Form /Resources << /XObject << /X 6 0 R >> >>"),
    ),
    "a stream that is a file of this machine": lambda: one_page(
        b"<< /Length 0 /F (/etc/passwd) /FFilter /FlateDecode >>\nstream\n\nendstream"
    ),
    "a script and a program that it would start": lambda: pdf_of(
        {1: "<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /Launch /F (/bin/sh) >> /AA << /O 6 0 R >> >>",
         2: "<< /Type /Pages /Count 1 /Kids [3 0 R] >>", 3: page(5), 4: FONT, 5: stream(HELLO),
         6: "<< /S /JavaScript /JS (app.alert\\(1\\)) >>"}
    ),
    "half a million words to draw": lambda: one_page(stream(b"BT /F1 12 Tf " + b"(a) Tj " * 500_000 + b"ET")),
    "a map of letters with four billion of them": lambda: one_page(
        stream(HELLO),
        o4="<< /Type /Font /Subtype /Type0 /BaseFont /A /Encoding /Identity-H /ToUnicode 7 0 R >>",
        o7=stream(b"1 begincodespacerange <00000000> <FFFFFFFF> endcodespacerange "
                  b"1 beginbfrange <00000000> <FFFFFFFF> <0000> endbfrange"),
    ),
}  # fmt: skip


# --- HTML -----------------------------------------------------------------------------------------

TAIL = "<p>这一段是真的文字，一共有三十多个字，读得到它就说明这一页没有把读它的程序弄坏。</p>"
BOMB = "<!DOCTYPE html [<!ENTITY a 'xxxxxxxxxx'>" + "".join(
    f"<!ENTITY {name} '{f'&{before};' * 10}'>" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE_PAGES: Mapping[str, Callable[[], str | bytes]] = {
    "blocks nested 900,000 deep": lambda: "<html>" + "<div>" * 900_000 + TAIL,
    "blocks nested 3,000 deep": lambda: "<html>" + "<div>" * 3_000 + TAIL,
    "letters nested 400,000 deep": lambda: "<html>" + "<b><i><u>" * 150_000 + TAIL,
    "links that are never closed": lambda: "<html>" + "<p><a href=x>" * 200_000 + TAIL,
    "letters that overlap": lambda: "<html>" + "<p><b><i></p></b>" * 100_000 + TAIL,
    "tables in tables": lambda: "<html>" + "<table><tr><td>" * 200_000 + TAIL,
    "a million breaks": lambda: "<html>" + "<br>" * 1_000_000 + TAIL,
    "a million attributes": lambda: "<html><p " + " ".join(f"a{n}=1" for n in range(400_000)) + ">" + TAIL,
    "entities that grow to a billion": lambda: BOMB + "]><html><p>&i;</p>" + TAIL,
    "an entity that is a file of this machine": lambda: (
        "<!DOCTYPE html [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><html><p>&x;</p>" + TAIL
    ),
    "frames and a refresh that lead elsewhere": lambda: (
        "<html><meta http-equiv=refresh content='0;url=file:///etc/passwd'><iframe src='http://169.254.169.254/'></iframe>"
        "<object data='file:///etc/passwd'></object>" + TAIL
    ),
    "comments that never end": lambda: "<html>" + TAIL + "<!--" * 1_000_000,
    "a script's data nested 400,000 deep": lambda: (
        "<html><script type='application/ld+json'>" + "[" * 400_000 + "</script>" + TAIL
    ),
    "an encoding that is none": lambda: "<html><meta charset='x-evil-9'>" + TAIL,
    "an encoding that is a program": lambda: "<html><meta charset='zlib_codec'>" + TAIL,
    "bytes of no encoding": lambda: b"<html><p>" + bytes(range(128, 256)) * 5000,
    "marks that nobody sees": lambda: "<html><p>" + "\u202e\u200b\ufeff" * 100_000 + "</p>" + TAIL,
    "templates in drawings in templates": lambda: "<html>" + "<svg><foreignObject><template>" * 50_000 + TAIL,
    "five megabytes of one word": lambda: "<html><p>" + "x" * (5 * 2**20 - 200) + "</p>",
}


def pages_of(text: str, count: int) -> Sequence[str]:
    return [f"{text} {number}" for number in range(count)]
