"""Office documents, e-books and archives of our own making: honest ones, and those made to trick a reader, none larger
than 20 MB.
"""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any
from xml.sax.saxutils import escape

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
HEAD = "<?xml version='1.0' encoding='UTF-8' standalone='yes'?>"
Content = str | bytes
Entries = Mapping[str, Content]
NONE: Mapping[str, Any] = MappingProxyType({})


def packed(
    entries: Mapping[str, Any] | Iterable[tuple[str | zipfile.ZipInfo, Content]], method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    """A ZIP archive with these entries, some perhaps twice."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, content in entries.items() if isinstance(entries, Mapping) else entries:
            archive.writestr(name, content)
    return file.getvalue()


def rels(*rows: tuple[str, str, str]) -> str:
    """The relationships of an entry: id, last word of the type, target."""
    each = (f'<Relationship Id="{i}" Type="{R}/{kind}" Target="{target}"/>' for i, kind, target in rows)
    return f'{HEAD}<Relationships xmlns="{RELS}">{"".join(each)}</Relationships>'


def core(title: str = "", creator: str = "", modified: str = "") -> str:
    return (
        f'{HEAD}<cp:coreProperties xmlns:cp="urn:cp" xmlns:dc="http://purl.org/dc/elements/1.1/" '
        f'xmlns:dcterms="http://purl.org/dc/terms/"><dc:title>{title}</dc:title><dc:creator>{creator}</dc:creator>'
        f"<dcterms:modified>{modified}</dcterms:modified></cp:coreProperties>"
    )


# --- Word -----------------------------------------------------------------------------------------


def docx_of(body: str, more: Entries = NONE) -> bytes:
    """A Word document with this body."""
    return packed(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": rels(("r1", "officeDocument", "word/document.xml")),
            "word/document.xml": f'{HEAD}<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>',
            "word/_rels/document.xml.rels": rels(("r1", "styles", "styles.xml"), ("r2", "footnotes", "footnotes.xml")),
            **more,
        }
    )


def run(words: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t xml:space='preserve'>{escape(words)}</w:t></w:r>"


def paragraph(words: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{run(words)}</w:p>"


def row_of(*cells: str) -> str:
    return "<w:tr>" + "".join(f"<w:tc>{cell}</w:tc>" for cell in cells) + "</w:tr>"


def docx(text: str) -> bytes:
    """A Word document with a paragraph for each line; one that begins with `# ` is a heading."""
    heading = '<w:pStyle w:val="1"/>'
    styles = f'<w:styles xmlns:w="{W}"><w:style w:styleId="1"><w:name w:val="heading 1"/></w:style></w:styles>'
    lines = (paragraph(line.removeprefix("# "), heading * line.startswith("# ")) for line in text.splitlines())
    return docx_of("".join(lines), {"word/styles.xml": styles})


# --- Excel ----------------------------------------------------------------------------------------


def sheet_of(rows: str, columns: str = "") -> str:
    return f'{HEAD}<worksheet xmlns="{S}"><cols>{columns}</cols><sheetData>{rows}</sheetData></worksheet>'


def xlsx_of(
    sheets: Mapping[str, str], more: Entries = NONE, *, book: str = "", states: Mapping[str, str] = NONE
) -> bytes:
    """A workbook with these sheets, each as XML."""
    listed = "".join(
        f'<sheet name="{name}" sheetId="{n}" r:id="s{n}" state="{states.get(name, "visible")}"/>'
        for n, name in enumerate(sheets, 1)
    )
    parts = [(f"s{n}", "worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)]
    shared = [("ss", "sharedStrings", "sharedStrings.xml"), ("st", "styles", "styles.xml")]
    return packed(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": rels(("r1", "officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'{HEAD}<workbook xmlns="{S}" xmlns:r="{R}">{book}<sheets>{listed}</sheets></workbook>',
            "xl/_rels/workbook.xml.rels": rels(*parts, *shared),
            **{f"xl/worksheets/sheet{n}.xml": xml for n, xml in enumerate(sheets.values(), 1)},
            **more,
        }
    )


def shared_strings(*strings: str) -> str:
    return f'{HEAD}<sst xmlns="{S}">{"".join(f"<si><t>{escape(one)}</t></si>" for one in strings)}</sst>'


def xlsx(text: str) -> bytes:
    """A workbook with a row for each line and a cell for each part of it between commas."""
    strings: list[str] = []
    rows = list[str]()
    for line in text.splitlines():
        cells = list[str]()
        for cell in line.split(","):
            if cell.replace(".", "").isdecimal():
                cells.append(f"<c><v>{cell}</v></c>")
            else:
                cells.append(f'<c t="s"><v>{len(strings)}</v></c>')
                strings.append(cell)
        rows.append(f"<row>{''.join(cells)}</row>")
    return xlsx_of({"表一": sheet_of("".join(rows))}, {"xl/sharedStrings.xml": shared_strings(*strings)})


# --- PowerPoint -----------------------------------------------------------------------------------


def shape(*lines: str, placeholder: str = "", more: str = "") -> str:
    kind = f'<p:ph type="{placeholder}"/>' if placeholder else ""
    words = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in lines)
    about = f'<p:nvSpPr><p:cNvPr id="1" name="x" {more}/><p:nvPr>{kind}</p:nvPr></p:nvSpPr>'
    return f"<p:sp>{about}<p:txBody>{words}</p:txBody></p:sp>"


def slide_of(shapes: str, more: str = "", tag: str = "sld") -> str:
    return f'{HEAD}<p:{tag} xmlns:p="{P}" xmlns:a="{A}" {more}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:{tag}>'


def pptx_of(slides: Sequence[str], more: Entries = NONE, *, order: Sequence[int] = ()) -> bytes:
    """A presentation with these slides, each as XML."""
    listed = "".join(f'<p:sldId id="{255 + n}" r:id="s{n}"/>' for n in order or range(1, len(slides) + 1))
    parts = [(f"s{n}", "slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1)]
    return packed(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": rels(("r1", "officeDocument", "/ppt/presentation.xml")),
            "ppt/presentation.xml": f'{HEAD}<p:presentation xmlns:p="{P}" xmlns:r="{R}">{listed}</p:presentation>',
            "ppt/_rels/presentation.xml.rels": rels(*parts),
            **{f"ppt/slides/slide{n}.xml": xml for n, xml in enumerate(slides, 1)},
            **more,
        }
    )


def pptx(text: str) -> bytes:
    """A presentation with a slide for each line: its title, then what follows behind colons."""
    return pptx_of(
        [
            slide_of(shape(title, placeholder="title") + shape(*lines))
            for title, *lines in (line.split(":") for line in text.splitlines())
        ]
    )


# --- e-books --------------------------------------------------------------------------------------

CONTAINER = (
    f'{HEAD}<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/content.opf"/></rootfiles></container>'
)


def epub_of(chapters: Mapping[str, str], more: Entries = NONE, *, spine: str = "", fields: str = "") -> bytes:
    """An e-book with these chapters by their file's name, each as XHTML."""
    items = "".join(f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in chapters)
    spine = spine or "".join(f'<itemref idref="{name}"/>' for name in chapters)
    opf = (
        f'{HEAD}<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata>{fields}</metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    return packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": CONTAINER,
            "OEBPS/content.opf": opf,
            **{f"OEBPS/{name}": xhtml for name, xhtml in chapters.items()},
            **more,
        }
    )


def epub(text: str) -> bytes:
    """An e-book with a chapter for each line."""
    chapters = {
        f"c{n}.xhtml": f"<html><body><p>{escape(line)}</p></body></html>" for n, line in enumerate(text.splitlines())
    }
    return epub_of(chapters, fields="<dc:title>书</dc:title>")


# --- hostile ones ---------------------------------------------------------------------------------

LAUGHS = "<!DOCTYPE x [<!ENTITY a 'xxxxxxxxxx'>" + "".join(
    f"<!ENTITY {name} '{f'&{before};' * 10}'>" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)  # fmt: skip
MAIN = {
    "docx": "word/document.xml",
    "xlsx": "xl/worksheets/sheet1.xml",
    "pptx": "ppt/slides/slide1.xml",
    "epub": "OEBPS/content.opf",
}
"""The entry of each kind that its tricks are in."""
HONEST: Mapping[str, bytes] = {
    "docx": docx("# 霜降\n天气渐冷"),
    "xlsx": xlsx("节气,日\n霜降,23"),
    "pptx": pptx("霜降:天气渐冷"),
    "epub": epub("霜降天气渐冷"),
    "zip": packed({"霜降.txt": "天气渐冷"}),
}


def unpacked(data: bytes) -> dict[str, Content]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def changed(kind: str, change: Callable[[str], str]) -> bytes:
    """An honest document after a change of the XML that its tricks are in."""
    entries = unpacked(HONEST[kind])
    xml = entries[MAIN[kind]]
    assert isinstance(xml, bytes)
    return packed(entries | {MAIN[kind]: change(xml.decode())})


def before_root(xml: str, words: str) -> str:
    """The XML with these words before its first element."""
    return xml.replace(HEAD, HEAD + words)


def inside(xml: str, words: str) -> str:
    """The XML with these words before the end of its last element."""
    end = xml.rindex("</")
    return xml[:end] + words + xml[end:]


def encoded(kind: str, name: str, change: Callable[[str], str] = str, *, codec: str = "") -> bytes:
    """A document after a change of its XML, which names this encoding and is in it or in another."""
    entries = unpacked(HONEST[kind])
    xml = entries[MAIN[kind]]
    assert isinstance(xml, bytes)
    written = change(xml.decode()).replace("'UTF-8'", f"'{name}'")
    return packed(entries | {MAIN[kind]: written.encode(codec or name)})


def lying(data: bytes, size: int) -> bytes:
    """An archive whose list gives each entry this size."""
    out, place = bytearray(data), 0
    while (place := out.find(b"PK\x01\x02", place)) >= 0:
        struct.pack_into("<I", out, place + 24, size)
        place += 4
    return bytes(out)


def flagged(data: bytes, flag: int = 1) -> bytes:
    """An archive whose entries all have this flag: encrypted."""
    out = bytearray(data)
    for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        place = 0
        while (place := out.find(mark, place)) >= 0:
            out[place + offset] |= flag
            place += 4
    return bytes(out)


def _twice(kind: str) -> bytes:
    entries = unpacked(HONEST[kind])
    return packed([*entries.items(), (MAIN[kind], b"<x>" * 1000)])


def _loops(kind: str) -> bytes:
    """A document whose main entry's relationships are itself, or lead out of the archive."""
    entries = unpacked(HONEST[kind])
    away = rels(
        ("s1", "worksheet", "../../../../etc/passwd"), ("r1", "styles", "/../../etc/passwd"),
        ("s2", "slide", "file:///etc/passwd"), ("r2", "notesSlide", "slide1.xml"), ("r3", "footnotes", "document.xml"),
    )  # fmt: skip
    return packed({name: away if name.endswith("xml.rels") else content for name, content in entries.items()})


COMMON: Mapping[str, Callable[[str], bytes]] = {
    "120 MB of blanks": lambda kind: changed(kind, lambda xml: inside(xml, " " * (120 * 2**20))),
    "120 MB of letters in one word": lambda kind: changed(kind, lambda xml: inside(xml, "x" * (120 * 2**20))),
    "entities that grow to a billion": lambda kind: changed(
        kind, lambda xml: inside(before_root(xml, LAUGHS + "]>"), "&i;")
    ),
    "an entity that is a file of this machine": lambda kind: changed(
        kind, lambda xml: inside(before_root(xml, "<!DOCTYPE x [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>"), "&x;")
    ),
    "entities that are elsewhere": lambda kind: changed(
        kind, lambda xml: inside(before_root(xml, "<!DOCTYPE x SYSTEM 'file:///etc/passwd' [%y;]>"), "&z;")
    ),
    "entities in UTF-16": lambda kind: encoded(
        kind, "UTF-16", lambda xml: inside(before_root(xml, LAUGHS + "]>"), "&i;")
    ),
    "in UTF-7": lambda kind: encoded(kind, "UTF-7"),
    "in an encoding that is none": lambda kind: encoded(kind, "rot13", codec="utf-8"),
    "elements nested 300,000 deep": lambda kind: changed(kind, lambda xml: inside(xml, "<a>" * 300_000)),
    "three million elements": lambda kind: changed(kind, lambda xml: inside(xml, "<a/>" * 3_000_000)),
    "an attribute of 20 MB": lambda kind: changed(kind, lambda xml: inside(xml, f"<a b='{'x' * (20 * 2**20)}'/>")),
    "cut off in the middle": lambda kind: HONEST[kind][: len(HONEST[kind]) // 2],
    "an entry that is there twice": _twice,
    "sizes of 1 byte by its list": lambda kind: lying(HONEST[kind], 1),
    "sizes of 4 GB by its list": lambda kind: lying(HONEST[kind], 0xFFFFFFF0),
    "encrypted entries": lambda kind: flagged(HONEST[kind]),
    "packed by LZMA, 30 MB": lambda kind: packed(
        unpacked(HONEST[kind]) | {MAIN[kind]: bytes(30 * 2**20)}, zipfile.ZIP_LZMA
    ),
    "relationships that are loops or lead away": _loops,
}  # fmt: skip
"""Tricks that every kind but a plain archive is open to."""


def _deep_tables() -> bytes:
    return docx_of("<w:tbl><w:tr><w:tc>" * 80 + paragraph("x") + "</w:tc></w:tr></w:tbl>" * 80)


def _styles_in_a_circle() -> bytes:
    styles = "".join(f'<w:style w:styleId="{n}"><w:basedOn w:val="{(n + 1) % 1000}"/></w:style>' for n in range(1000))
    body = paragraph("hello", '<w:pStyle w:val="1"/>')
    return docx_of(body, {"word/styles.xml": f'<w:styles xmlns:w="{W}">{styles}</w:styles>'})


OWN: Mapping[str, Mapping[str, Callable[[], bytes]]] = {
    "docx": {
        "a million paragraphs": lambda: docx_of(paragraph("霜") * 300_000),
        "tables in tables": _deep_tables,
        "styles in a circle": _styles_in_a_circle,
        "macros": lambda: docx_of(paragraph("hello"), {"word/vbaProject.bin": b"\xd0\xcf\x11\xe0" * 1000}),
        "cells and ends of tables without a table": lambda: docx_of("<w:tc/><w:tr/>" * 1000 + paragraph("x")),
    },
    "xlsx": {
        "10,000 sheets": lambda: xlsx_of({f"s{n}": sheet_of("<row><c><v>1</v></c></row>") for n in range(10_000)}),
        "a million rows": lambda: xlsx_of({"s": sheet_of("<row><c><v>1</v></c><c><v>2</v></c></row>" * 500_000)}),
        "strings with indexes that are none": lambda: xlsx_of(
            {"s": sheet_of("".join(f'<row><c t="s"><v>{n}</v></c></row>' for n in ("9" * 5000, -1, "１", 4**30, 0)))},
            {"xl/sharedStrings.xml": shared_strings("x")},
        ),
        "a string of a megabyte in each of 100,000 cells": lambda: xlsx_of(
            {"s": sheet_of("<row>" + '<c t="s"><v>0</v></c>' * 100_000 + "</row>")},
            {"xl/sharedStrings.xml": shared_strings("x" * 2**20)},
        ),
        "1,500,000 shared strings": lambda: xlsx_of(
            {"s": sheet_of('<row><c t="s"><v>3</v></c></row>')},
            {"xl/sharedStrings.xml": f'<sst xmlns="{S}">' + "<si><t/></si>" * 1_500_000 + "</sst>"},
        ),
        "columns that there are not, and numbers without end": lambda: xlsx_of(
            {"s": sheet_of(
                "<row><c r='A1'><v>7</v></c><c r='XFD1'><v>1e999</v></c><c r='ZZZZZZZ1'><v>nan</v></c></row>"
                "<row><c s='99999999'><v>-1e308</v></c><c s='１'><v>5</v></c></row>",
                "<col min='1' max='16384' hidden='0'/><col min='2' max='99999999999999' hidden='1'/>",
            )}
        ),
        "macros and a program to start": lambda: xlsx_of(
            {"s": sheet_of("<row><c><f>cmd|' /C calc'!A0</f></c></row>")}, {"xl/vbaProject.bin": b"x"}
        ),
    },
    "pptx": {
        "10,000 slides": lambda: pptx_of([slide_of(shape(f"第{n}页")) for n in range(10_000)]),
        "one slide a million times": lambda: pptx_of([slide_of(shape("x" * 1000))], order=[1] * 300_000),
        "a slide that is its own notes": lambda: pptx_of(
            [slide_of(shape("hello"))], {"ppt/slides/_rels/slide1.xml.rels": rels(("n", "notesSlide", "slide1.xml"))}
        ),
        "groups in groups": lambda: pptx_of([slide_of("<p:grpSp>" * 200 + shape("x") + "</p:grpSp>" * 200)]),
        "macros": lambda: pptx_of([slide_of(shape("hello"))], {"ppt/vbaProject.bin": b"x"}),
    },
    "epub": {
        "one chapter a million times": lambda: epub_of(
            {"c": "<p>" + "x" * 10_000 + "</p>"}, spine='<itemref idref="c"/>' * 500_000
        ),
        "10,000 chapters": lambda: epub_of({f"c{n}": f"<p>第{n}章</p>" for n in range(10_000)}),
        "a chapter of 120 MB": lambda: epub_of({"c": "<p>" + "x" * (120 * 2**20)}),
        "a chapter nested 3,000 deep": lambda: epub_of({"c": "<div>" * 3_000 + "x"}),
        "a chapter that is a file of this machine": lambda: epub_of({"../../../../../etc/passwd": "", "a": "<p>x</p>"}),
        "a script and frames": lambda: epub_of(
            {"c": "<body><script>alert(1)</script><iframe src='file:///etc/passwd'></iframe><p>hello</p></body>"}
        ),
        "a container that names itself": lambda: packed(
            {"META-INF/container.xml": CONTAINER.replace("OEBPS/content.opf", "META-INF/container.xml")}
        ),
        "encrypted by its shop": lambda: epub_of(
            {"c": "\x00\x01\x02"},
            {"META-INF/encryption.xml": "<encryption><CipherReference URI='OEBPS/c'/></encryption>"},
        ),
    },
}  # fmt: skip


# --- archives -------------------------------------------------------------------------------------


def named(name: str, *, mode: int = 0) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def _nested(depth: int) -> bytes:
    data = packed({"zeros": bytes(10 * 2**20)})
    for number in range(depth):
        data = packed({f"{number}-{copy}.zip": data for copy in range(4)})
    return data


def _overlapping() -> bytes:
    """An archive whose list names its one entry 20,000 times."""
    data = packed({"a": bytes(2**20)})
    start = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    table = data[start:end] * 20_000
    tail = bytearray(data[end:])
    struct.pack_into("<HHII", tail, 8, 20_000, 20_000, len(table), start)
    return data[:start] + table + bytes(tail)


def _table_elsewhere() -> bytes:
    out = bytearray(HONEST["zip"])
    struct.pack_into("<I", out, out.rindex(b"PK\x05\x06") + 16, 0xFFFFFF00)
    return bytes(out)


HOSTILE_ZIPS: Mapping[str, Callable[[], bytes]] = {
    "archives in archives": lambda: _nested(5),
    "sizes of 4 GB by its list": lambda: lying(packed({str(n): "x" for n in range(100)}), 0xFFFFFFF0),
    "one entry that is listed 20,000 times": _overlapping,
    "60,000 entries": lambda: packed([(str(n), "") for n in range(60_000)], zipfile.ZIP_STORED),
    "10,000 entries": lambda: packed([(f"第{n}个文件.txt", "") for n in range(10_000)], zipfile.ZIP_STORED),
    "names that lead out of it": lambda: packed(
        [("../../../../etc/cron.d/x", ""), ("/etc/passwd", ""), ("C:\\Windows\\x.dll", ""), ("..\\..\\x", "")]
    ),
    "names with marks that nobody sees": lambda: packed(
        [("a\u202egpj.exe", ""), ("a\nurl: https://evil.example/x", ""), ("\u200b\u200b", ""), ("\x07\x1b[2J", "")]
    ),
    "a name of 60,000 letters": lambda: packed({"x" * 60_000: ""}),
    "links": lambda: packed([(named("passwd", mode=0o120777), "/etc/passwd")]),
    "encrypted entries": lambda: flagged(HONEST["zip"]),
    "cut off in the middle": lambda: packed({str(n): "x" for n in range(100)})[:2000],
    "nothing but its first bytes": lambda: b"PK\x03\x04" + bytes(range(256)) * 1000,
    "an entry that is there twice": lambda: packed([("a.txt", "honest"), ("a.txt", "x" * 1000)]),
    "an empty one": lambda: packed({}),
    "folders alone": lambda: packed({"a/": "", "a/b/": ""}),
    "a list that is elsewhere": _table_elsewhere,
    "a second end in its remark": lambda: HONEST["zip"][:-2] + b"\x16\x00PK\x05\x06" + bytes(18),
    "a relationship to a document that is none": lambda: packed(
        {"_rels/.rels": rels(("r1", "officeDocument", "word/document.xml")), "word/document.xml": "<x/>"}
    ),
}  # fmt: skip


def hostile(kind: str) -> Mapping[str, Callable[[], bytes]]:
    """The hostile documents of a kind, by what they are."""
    if kind == "zip":
        return HOSTILE_ZIPS
    return {name: partial(make, kind) for name, make in COMMON.items()} | dict(OWN[kind])


# --- old and encrypted ones -----------------------------------------------------------------------


def ole_of(stream: str) -> bytes:
    """An OLE file as far as readers look at it: its first bytes, and the name of a stream."""
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + stream.encode("utf-16-le") + bytes(2000)
