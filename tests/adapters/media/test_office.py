"""Office documents, e-books and archives in the process that reads documents, a real one: what it finds in honest ones,
and that hostile ones are killed, refused or cut, and the same reader reads the next honest one.
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import AsyncIterator

import pytest

from adapters.media import pdf_text
from adapters.media.confined_protocol import read_refusal, write_refusal
from adapters.media.document_text import MAX_TEXT
from adapters.media.reader import read, read_document
from adapters.media.reader_process import ReaderProcess
from bot.core.documents import Document, UnreadableDocument
from frostagent.types.errors import Lack, MediaError
from tests.adapters.media import office
from tests.adapters.media.documents import HONEST as PAGE
from tests.adapters.media.documents import HOSTILE_PDFS, text_pdf
from tests.adapters.media.office import HONEST, W, paragraph, row_of, run, shape, sheet_of, slide_of
from tests.cases import each_case

SECONDS = 8.0  # that a document has
BINARY = office.rels(("r1", "officeDocument", "xl/workbook.bin"))


@pytest.fixture
async def reader() -> AsyncIterator[ReaderProcess]:
    reader = ReaderProcess(seconds=SECONDS, patience=60)
    yield reader
    await reader.aclose()


async def lines(reader: ReaderProcess, data: bytes) -> tuple[str, ...]:
    return (await reader.read(data)).paragraphs


async def lack(reader: ReaderProcess, data: bytes) -> Lack:
    with pytest.raises(UnreadableDocument) as raised:
        await reader.read(data)
    return raised.value.lack


# --- Word -----------------------------------------------------------------------------------------


async def test_a_word_document_gives_its_properties_headings_lists_tables_and_notes(reader: ReaderProcess) -> None:
    styles = (
        f'<w:styles xmlns:w="{W}"><w:style w:styleId="1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="a"><w:name w:val="自定"/><w:basedOn w:val="1"/></w:style>'
        '<w:style w:styleId="b"><w:pPr><w:outlineLvl w:val="5"/></w:pPr></w:style></w:styles>'
    )
    table = row_of(paragraph("年"), paragraph("日期")) + row_of(paragraph("2025") + paragraph("乙巳"), paragraph("23"))
    body = (
        paragraph("霜降", '<w:pStyle w:val="1"/>')
        + paragraph("由来", '<w:pStyle w:val="a"/>')
        + paragraph("细节", '<w:pStyle w:val="b"/>')
        + paragraph("自己的级别", '<w:outlineLvl w:val="1"/>')
        + paragraph("正文", '<w:outlineLvl w:val="9"/>')
        + paragraph("柿子", '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="3"/></w:numPr>')
        + "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr>"
        + "<w:r><w:t>一</w:t><w:tab/><w:t>二</w:t><w:br/><w:t>三</w:t></w:r></w:p>"
        + f"<w:tbl>{table}</w:tbl>"
        + row_of(paragraph("表外"))
        + paragraph(" ")
    )
    notes = f'<w:footnotes xmlns:w="{W}">{paragraph("见《月令》")}</w:footnotes>'
    more = {"word/styles.xml": styles, "word/footnotes.xml": notes}
    data = office.docx_of(body, more | {"docProps/core.xml": office.core("历书", "老王", "2026-10-23T08:00:00Z")})
    assert await reader.read(data) == Document(
        kind="Word document",
        title="历书",
        author="老王",
        date="2026-10-23",
        paragraphs=(
            "# 霜降", "# 由来", "#### 细节", "## 自己的级别", "正文", "- 柿子", "一 二\n三",
            "年 | 日期", "2025 乙巳 | 23", "表外", "# Footnotes", "见《月令》",
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    "unseen",
    [
        "<w:del><w:r><w:delText>{}</w:delText></w:r></w:del>",
        "<w:moveFrom><w:r><w:t>{}</w:t></w:r></w:moveFrom>",
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>{}</w:t></w:r>",
        "<w:r><w:rPr><w:rStyle w:val='hidden'/></w:rPr><w:t>{}</w:t></w:r>",
        "<w:r><w:rPr><w:sz w:val='2'/></w:rPr><w:t>{}</w:t></w:r>",
        "<w:r><w:instrText>{}</w:instrText></w:r>",
        "<w:r><w:drawing><x:posOffset xmlns:x='x'>{}</x:posOffset></w:drawing></w:r>",
        "<w:r><mc:Fallback xmlns:mc='x'><w:t>{}</w:t></mc:Fallback></w:r>",
        "<!-- {} -->",
    ],
)
async def test_what_people_do_not_see_in_a_word_document_is_not_read(unseen: str, reader: ReaderProcess) -> None:
    hidden = f'<w:styles xmlns:w="{W}"><w:style w:styleId="hidden"><w:rPr><w:vanish/></w:rPr></w:style></w:styles>'
    body = f"<w:p>{run('看得见')}{unseen.format('看不见')}{run('的字')}</w:p>"
    assert await lines(reader, office.docx_of(body, {"word/styles.xml": hidden})) == ("看得见的字",)


@pytest.mark.parametrize(
    "properties",
    ["<w:vanish w:val='0'/>", "<w:sz w:val='3'/>", "<w:rPrChange><w:rPr><w:vanish/></w:rPr></w:rPrChange>"],
)
async def test_what_people_see_in_a_word_document_is_read(properties: str, reader: ReaderProcess) -> None:
    assert await lines(reader, office.docx_of(f"<w:p>{run('看得见', properties)}</w:p>")) == ("看得见",)


@each_case(
    ("written", "read"),
    [
        ("ex\u00adam\u00adple", "example"),
        ("密\u200b码\ufeff", "密码"),
        ("cod.exe\u202egpj", "cod.exegpj"),
        ("a" + "".join(map(chr, range(0xE0120, 0xE0140))) + "b\ufe01", "ab"),
        ("👨\u200d👩 a\u200db", "👨\u200d👩 ab"),
        ("a\u00a0b\u3000c\u2028d", "a b c d"),
    ],
)
async def test_marks_that_nobody_sees_part_no_word_and_carry_none(
    written: str, read: str, reader: ReaderProcess
) -> None:
    assert await lines(reader, office.docx_of(paragraph(written))) == (read,)


async def test_a_text_box_in_a_paragraph_is_read_beside_it(reader: ReaderProcess) -> None:
    box = f"<w:r><w:pict><w:txbxContent>{paragraph('框里')}</w:txbxContent></w:pict></w:r>"
    assert await lines(reader, office.docx_of(f"<w:p>{run('前')}{box}{run('后')}</w:p>")) == ("框里", "前后")


# --- Excel ----------------------------------------------------------------------------------------

FORMATS = (
    '<styleSheet><numFmts><numFmt numFmtId="170" formatCode="yyyy&quot;年&quot;m&quot;月&quot;"/>'
    '<numFmt numFmtId="171" formatCode="[Red]0.00&quot;days&quot;"/></numFmts>'
    '<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="10"/><xf numFmtId="170"/><xf numFmtId="171"/>'
    "</cellXfs>"
    '<cellStyles><xf numFmtId="14"/></cellStyles></styleSheet>'
)


async def test_a_workbook_gives_its_sheets_by_name_and_each_row_as_a_line(reader: ReaderProcess) -> None:
    rows = (
        '<row><c t="s"><v>1</v></c><c t="s"><v>0</v></c><c t="inlineStr"><is><t>比例</t></is></c></row><row/>'
        '<row><c s="1"><v>46318</v></c><c><v>1.1000000000000001</v></c><c s="2"><v>0.125</v></c></row>'
        '<row><c r="A4" s="3"><v>46318.5</v></c><c r="C4" s="4"><v>5</v></c></row>'
        '<row><c t="b"><v>1</v></c><c t="e"><v>#N/A</v></c><c t="str"><f>A1&amp;B1</f><v>甲乙</v></c></row>'
        '<row><c s="1"><v>0.5</v></c><c><f>SUM(A1)</f></c><c s="1"><v>-3</v></c></row>'
    )
    strings = "<sst><si><r><t>数</t></r><r><t>量</t></r><rPh><t>すう</t></rPh></si><si><t>日期</t></si></sst>"
    data = office.xlsx_of(
        {"台账": sheet_of(rows), "空": sheet_of("")}, {"xl/sharedStrings.xml": strings, "xl/styles.xml": FORMATS}
    )
    read = await reader.read(data)
    assert (read.kind, read.is_cut) == ("Excel workbook, 2 sheets", False)
    assert read.paragraphs == (
        "# 台账", "日期 | 数量 | 比例", "2026-10-23 | 1.1 | 12.5%", "2026-10-23 12:00 |  | 5", "TRUE | #N/A | 甲乙",
        "12:00 | =SUM(A1) | -3", "# 空",
    )  # fmt: skip


async def test_times_have_their_seconds_and_durations_are_no_dates(reader: ReaderProcess) -> None:
    styles = (
        '<styleSheet><numFmts><numFmt numFmtId="164" formatCode="[h]:mm"/><numFmt numFmtId="165" formatCode="[mm]:ss"/>'
        '<numFmt numFmtId="166" formatCode="[Red][$-804]m/d"/></numFmts><cellXfs><xf numFmtId="164"/>'
        '<xf numFmtId="165"/><xf numFmtId="46"/><xf numFmtId="21"/><xf numFmtId="22"/><xf numFmtId="166"/></cellXfs>'
        "</styleSheet>"
    )
    rows = (
        '<row><c s="0"><v>1.5</v></c><c s="1"><v>0.003125</v></c><c s="2"><v>30.000011574074</v></c></row>'
        '<row><c s="3"><v>0.52</v></c><c s="4"><v>46318.52</v></c><c s="5"><v>46318</v></c></row>'
        '<row><c s="0"><v>-0.25</v></c><c s="0"><v>0</v></c><c s="2"><v>1e300</v></c><c s="0"><v>nan</v></c></row>'
    )
    assert await lines(reader, office.xlsx_of({"s": sheet_of(rows)}, {"xl/styles.xml": styles})) == (
        "# s",
        "36:00 | 0:04:30 | 720:00:01",
        "12:28:48 | 2026-10-23 12:28:48 | 2026-10-23",
        "-0.25 | 0:00 | 1e+300 | nan",
    )


async def test_dates_of_an_old_mac_begin_in_1904(reader: ReaderProcess) -> None:
    sheets = {"s": sheet_of('<row><c s="1"><v>1</v></c></row>')}
    data = office.xlsx_of(sheets, {"xl/styles.xml": FORMATS}, book='<workbookPr date1904="1"/>')
    assert await lines(reader, data) == ("# s", "1904-01-02")


async def test_hidden_sheets_rows_and_columns_are_not_read_and_it_says_so(reader: ReaderProcess) -> None:
    rows = "<row><c><v>1</v></c><c><v>2</v></c><c><v>3</v></c></row><row hidden='1'><c><v>4</v></c></row>"
    sheets = {
        "a": sheet_of(rows, '<col min="2" max="2" hidden="1"/><col min="3" max="3"/>'),
        "b": sheet_of(rows),
        "c": sheet_of(rows),
    }
    read = await reader.read(office.xlsx_of(sheets, states={"b": "hidden", "c": "veryHidden"}))
    assert read.kind == "Excel workbook, 1 sheets, 2 hidden ones are not read"
    assert read.paragraphs == ("# a", "1 |  | 3")


async def test_columns_behind_the_hundredth_are_left_out_and_it_says_so(reader: ReaderProcess) -> None:
    sheets = {"s": sheet_of('<row><c r="CV1"><v>100</v></c><c r="CW1"><v>101</v></c></row>')}
    read = await reader.read(office.xlsx_of(sheets))
    assert read.is_cut
    assert read.paragraphs[1].split(" | ")[-1] == "100"


# --- PowerPoint -----------------------------------------------------------------------------------


async def test_slides_are_read_in_their_order_with_titles_tables_and_notes(reader: ReaderProcess) -> None:
    cells = "".join(f"<a:tc><a:p><a:r><a:t>{one}</a:t></a:r></a:p></a:tc>" for one in "甲乙")
    first = slide_of(shape("正文", "第二行") + shape("标题", placeholder="ctrTitle") + shape("3", placeholder="sldNum"))
    second = slide_of(f"<p:graphicFrame><a:tbl><a:tr>{cells}</a:tr></a:tbl></p:graphicFrame>")
    notes = slide_of(shape("说慢一点") + shape("1", placeholder="sldNum"), tag="notes")
    more = {
        "ppt/slides/_rels/slide2.xml.rels": office.rels(
            ("l", "slideLayout", "../layouts/l.xml"), ("n", "notesSlide", "../notesSlides/n.xml")
        ),
        "ppt/layouts/l.xml": slide_of(shape("单击此处编辑"), tag="sldLayout"),
        "ppt/notesSlides/n.xml": notes,
    }
    read = await reader.read(office.pptx_of([first, second], more, order=[2, 1]))
    assert (read.kind, read.is_cut) == ("PowerPoint, 2 slides", False)
    assert read.paragraphs == ("# [slide 1]", "甲 | 乙", "notes: 说慢一点", "# [slide 2] 标题", "正文", "第二行")


async def test_hidden_slides_and_shapes_are_not_read_and_it_says_so(reader: ReaderProcess) -> None:
    slides = [
        slide_of(shape("看得见") + shape("看不见", more='hidden="1"') + shape("也看得见")),
        slide_of(shape("藏"), 'show="0"'),
    ]
    read = await reader.read(office.pptx_of(slides))
    assert (read.kind, read.is_cut) == ("PowerPoint, 2 slides, 1 hidden ones are not read", False)
    assert read.paragraphs == ("# [slide 1]", "看得见", "也看得见")


# --- e-books --------------------------------------------------------------------------------------


async def test_a_book_gives_its_chapters_in_the_order_of_its_spine(reader: ReaderProcess) -> None:
    pytest.importorskip("selectolax", reason="the extra web is not installed")
    chapters = {
        "b.xhtml": "<html><body><h1>第二章</h1><p>后来。</p></body></html>",
        "a b.xhtml": "<html><body><h1>第一章</h1><p>从前。<span style='display:none'>听我的</span></p></body></html>",
        "cover.xhtml": "<html><body><p>封面</p></body></html>",
    }
    spine = '<itemref idref="cover.xhtml" linear="no"/><itemref idref="a b.xhtml"/><itemref idref="b.xhtml"/>'
    authors = "<dc:creator>老王</dc:creator><dc:creator>小李</dc:creator>"
    fields = f"<dc:title>山中</dc:title>{authors}<dc:date>2026-01-02</dc:date>"
    assert await reader.read(office.epub_of(chapters, spine=spine, fields=fields)) == Document(
        kind="e-book, 2 files of text",
        title="山中",
        author="老王",
        date="2026-01-02",
        paragraphs=("# 第一章", "从前。", "# 第二章", "后来。"),
    )


async def test_fonts_may_be_encrypted_and_chapters_may_not(reader: ReaderProcess) -> None:
    pytest.importorskip("selectolax", reason="the extra web is not installed")
    key = "META-INF/encryption.xml"
    fonts = {key: "<encryption><CipherReference URI='OEBPS/fonts/a.otf'/></encryption>"}
    assert await lines(reader, office.epub_of({"c": "<p>x</p>"}, fonts)) == ("x",)
    assert await lack(reader, office.OWN["epub"]["encrypted by its shop"]()) is Lack.ENCRYPTED


# --- archives -------------------------------------------------------------------------------------


async def test_an_archive_is_listed_and_nothing_of_it_is_unpacked(reader: ReaderProcess) -> None:
    data = office.packed({"src/main.py": "x" * 3000, "src/": "", "说明.txt": "", "big.bin": bytes(2 * 2**20)})
    assert await reader.read(data) == Document(
        kind="ZIP archive that was not unpacked, 3 files, 2.0 MB by its list",
        paragraphs=("src/main.py (2.9 KB)", "说明.txt (0 B)", "big.bin (2.0 MB)"),
    )


@each_case(
    ("size", "told"),
    [
        (1023, "1023 B"),
        (1024, "1.0 KB"),
        (2**20, "1.0 MB"),
        (3 * 2**30 + 2**29, "3.5 GB"),
        (2**41, "2.0 TB"),
        (2**60, "1048576.0 TB"),
    ],
)
def test_sizes_are_told_in_their_unit(size: int, told: str) -> None:
    entry = zipfile.ZipInfo("电影.mkv")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(entry, "")
        entry.file_size = size
    assert read_document(file.getvalue()).paragraphs == (f"电影.mkv ({told})",)


@each_case("encoding", ["gb18030", "utf-8"])
async def test_names_are_read_in_the_letters_they_were_written_in(encoding: str, reader: ReaderProcess) -> None:
    written = "期末作业.doc".encode(encoding)
    data = office.packed({"x" * len(written): ""}).replace(b"x" * len(written), written)
    assert await lines(reader, data) == ("期末作业.doc (0 B)",)


@each_case(
    ("name", "told"),
    [
        (
            "names with marks that nobody sees",
            ("agpj.exe (0 B)", "a url: https://evil.example/x (0 B)", "(no name) (0 B)", "(no name) (0 B)"),
        ),
        ("links", ("passwd (11 B, link)",)),
        ("encrypted entries", ("霜降.txt (12 B, encrypted)",)),
        ("an entry that is there twice", ("a.txt (6 B)", "a.txt (1000 B)")),
    ],
)  # fmt: skip
async def test_what_is_odd_about_an_entry_is_said(name: str, told: tuple[str, ...], reader: ReaderProcess) -> None:
    assert await lines(reader, office.HOSTILE_ZIPS[name]()) == told


# --- parts that are not there ---------------------------------------------------------------------


@each_case(
    ("kind", "gone", "told"),
    [
        ("pptx", "ppt/slides/slide1.xml", ("# [slide 2] 二",)),
        ("xlsx", "xl/worksheets/sheet1.xml", ("# b", "2")),
        ("docx", "word/_rels/document.xml.rels", ("x",)),
        ("pptx", "ppt/nothing.xml", ("# [slide 1] 一", "# [slide 2] 二")),
    ],
)
async def test_what_is_named_and_not_there_is_left_out(
    kind: str, gone: str, told: tuple[str, ...], reader: ReaderProcess
) -> None:
    sheets = {name: sheet_of(f"<row><c><v>{n}</v></c></row>") for n, name in enumerate("ab", 1)}
    whole = {"pptx": office.pptx("一\n二"), "xlsx": office.xlsx_of(sheets), "docx": office.docx_of(paragraph("x"))}
    entries = office.unpacked(whole[kind])
    entries.pop(gone, None)
    assert await lines(reader, office.packed(entries)) == told


async def test_a_slide_or_sheet_without_a_relationship_is_left_out(reader: ReaderProcess) -> None:
    entries = office.unpacked(office.pptx("一\n二"))
    entries["ppt/_rels/presentation.xml.rels"] = office.rels(("s2", "slide", "slides/slide2.xml"))
    assert await lines(reader, office.packed(entries)) == ("# [slide 2] 二",)


async def test_a_chapter_that_is_not_there_is_left_out(reader: ReaderProcess) -> None:
    pytest.importorskip("selectolax", reason="the extra web is not installed")
    entries = office.unpacked(office.epub("一\n二"))
    del entries["OEBPS/c0.xhtml"]
    assert await lines(reader, office.packed(entries)) == ("二",)


# --- plain text, and what cannot be read ----------------------------------------------------------


@each_case("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
async def test_a_text_is_read_in_the_encodings_text_comes_in(encoding: str, reader: ReaderProcess) -> None:
    assert await lines(reader, "第一行\n你好".encode(encoding)) == ("第一行\n你好",)


async def test_a_program_keeps_its_indentation_and_loses_its_colours(reader: ReaderProcess) -> None:
    source = b"def f():\n\n\tif x:\n        pass\n\n\x1b[31mred\x1b[0m\r\n"
    assert await lines(reader, source) == ("def f():", "    if x:\n        pass", "red")


async def test_a_page_that_shows_nothing_is_read_as_the_program_it_is(reader: ReaderProcess) -> None:
    source = "<html><body><canvas></canvas><script>play()</script></body></html>"
    assert await reader.read(source.encode()) == Document(kind="text", paragraphs=(source,))
    pytest.importorskip("selectolax", reason="the extra web is not installed")
    assert (await reader.read(PAGE.encode())).title == "霜降 - 历书"


@each_case("line", ["你\n", "你"])
@each_case("encoding", ["utf-8", "gb18030"])
async def test_of_a_long_text_the_beginning_is_read_and_it_says_so(
    line: str, encoding: str, reader: ReaderProcess
) -> None:
    read = await reader.read(b"x" + (line * 600_000).encode(encoding))
    assert read.is_cut
    assert read.paragraphs[0].startswith(f"x{line}你")
    assert "\ufffd" not in read.paragraphs[-1]
    read = await reader.read(line.encode(encoding) * 250_000)  # read to its end, and kept in part
    assert (read.is_cut, sum(map(len, read.paragraphs))) == (True, MAX_TEXT)


@each_case(
    ("data", "why"),
    [
        (b" \n", Lack.EMPTY),
        (office.docx(""), Lack.EMPTY),
        (office.xlsx(""), Lack.EMPTY),
        (office.packed({}), Lack.EMPTY),
        (office.pptx_of([slide_of("")]), Lack.SCANNED),
        (office.ole_of("EncryptedPackage"), Lack.ENCRYPTED),
        (office.flagged(HONEST["docx"]), Lack.ENCRYPTED),
        (office.ole_of("WordDocument"), Lack.OLD_OFFICE),
        (office.ole_of("Workbook"), Lack.OLD_OFFICE),
        (office.ole_of("PowerPoint Document"), Lack.OLD_OFFICE),
        (office.packed({"_rels/.rels": BINARY, "xl/workbook.bin": "x"}), Lack.OLD_OFFICE),
        (office.ole_of("Other"), Lack.NO_TEXT),
        (HONEST["docx"][:300], Lack.DAMAGED),
        (office.changed("xlsx", lambda xml: xml[:-20]), Lack.DAMAGED),
        (b"Rar!\x1a\x07\x00" + bytes(100), Lack.NO_TEXT),
        (b"MZ\x90\x03\x04 program", Lack.NO_TEXT),
        (b"\x01\x02 odd", Lack.NO_TEXT),
    ],
)  # fmt: skip
async def test_what_cannot_be_read_says_why(data: bytes, why: Lack, reader: ReaderProcess) -> None:
    assert await lack(reader, data) is why


async def test_a_pdf_that_cannot_be_read_says_why(reader: ReaderProcess) -> None:
    pytest.importorskip("pypdf", reason="the extra web is not installed")
    assert await lack(reader, text_pdf("", "")) is Lack.SCANNED
    assert await lack(reader, HOSTILE_PDFS["encrypted with a password"]()) is Lack.ENCRYPTED
    assert await lack(reader, HOSTILE_PDFS["nothing but its first line"]()) is Lack.DAMAGED


def test_without_the_extra_web_office_and_archives_are_read_and_the_others_say_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for library in ("pypdf", "selectolax", "selectolax.lexbor"):
        monkeypatch.setitem(sys.modules, library, None)
    for data in (text_pdf("hello"), HONEST["epub"]):
        with pytest.raises(MediaError) as raised:
            read(b"\n" + data)
        assert raised.value.lack is Lack.NOT_INSTALLED
    for kind in ("docx", "xlsx", "pptx", "zip"):
        assert "霜降" in read(b"\n" + HONEST[kind]).decode()
    assert '"kind":"text"' in read(b"\n" + PAGE.encode()).decode(), "a page is read as its source"


async def test_of_a_slow_pdf_the_pages_so_far_are_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pypdf", reason="the extra web is not installed")
    monkeypatch.setattr(pdf_text, "ENOUGH_TIME", -1.0)
    read = pdf_text.read_pdf(text_pdf("one", "two", "three"))
    assert (read.paragraphs, read.is_cut) == (("[page 1]", "one"), True)
    with pytest.raises(MediaError, match="none of the pages that were looked at has text"):
        pdf_text.read_pdf(text_pdf("", "two"))


async def test_a_page_of_more_than_five_megabytes_is_read_as_source_if_it_is_a_file(reader: ReaderProcess) -> None:
    page = b"<html><body>\n" + b"<p>x</p>\n" * (6 * 2**20 // 9)
    read = await reader.read(page)
    assert (read.kind, read.is_cut, read.paragraphs[0][:12]) == ("text", True, "<html><body>")
    with pytest.raises(UnreadableDocument, match="too large a page"):
        await reader.read(page, told="text/html")


def test_a_refusal_has_a_reason_whatever_the_program_wrote() -> None:
    written = write_refusal(MediaError("no words", Lack.SCANNED))
    assert (str(read_refusal(written)), read_refusal(written).lack) == ("no words", Lack.SCANNED)
    odd = read_refusal(b"owner\n" + b"x" * 1000)
    assert (str(odd), odd.lack) == ("x" * 200, Lack.UNREADABLE)
    assert read_refusal(b"\xff").lack is Lack.UNREADABLE


async def test_a_pdf_inside_an_archive_makes_it_no_pdf(reader: ReaderProcess) -> None:
    data = office.packed({"a.pdf": text_pdf("hello")}, 0)
    assert (await lines(reader, data))[0].startswith("a.pdf (")


# --- hostile ones ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in HONEST for name in office.hostile(kind)])
async def test_a_hostile_document_is_bounded_and_the_next_honest_one_is_read(
    kind: str, name: str, reader: ReaderProcess
) -> None:
    if kind == "epub":
        pytest.importorskip("selectolax", reason="the extra web is not installed")
    data = office.hostile(kind)[name]()
    assert len(data) <= 20 * 2**20
    try:
        told = "\n".join((await reader.read(data)).paragraphs)
    except UnreadableDocument as error:
        told = str(error)
    assert told
    assert len(told) <= 2 * MAX_TEXT
    assert "root:" not in told
    assert "霜降" in "\n".join(await lines(reader, HONEST[kind]))


@each_case("kind", list(HONEST))
def test_there_are_twelve_and_more_hostile_ones_of_each_kind(kind: str) -> None:
    assert len(office.hostile(kind)) >= 12


@each_case(
    ("kind", "name", "words"),
    [
        ("docx", "entities that grow to a billion", "declares entities"),
        ("xlsx", "an entity that is a file of this machine", "declares entities"),
        ("pptx", "elements nested 300,000 deep", "nested too deeply"),
        ("docx", "packed by LZMA, 30 MB", "packed in a way that is not read"),
        ("docx", "sizes of 1 byte by its list", "damaged"),
        ("zip", "60,000 entries", "too many entries"),
    ],
)
async def test_what_is_refused_of_hostile_ones_is_said_in_words(
    kind: str, name: str, words: str, reader: ReaderProcess
) -> None:
    with pytest.raises(UnreadableDocument, match=words):
        await reader.read(office.hostile(kind)[name]())


@each_case(
    ("kind", "name", "first"),
    [
        ("docx", "120 MB of blanks", "# 霜降"),
        ("xlsx", "three million elements", "# 表一"),
        ("xlsx", "10,000 sheets", "# s0"),
        ("xlsx", "a string of a megabyte in each of 100,000 cells", "# s"),
        ("pptx", "10,000 slides", "# [slide 1]"),
        ("zip", "10,000 entries", "第0个文件.txt (0 B)"),
    ],
)
async def test_of_hostile_ones_that_are_only_long_the_beginning_is_read(
    kind: str, name: str, first: str, reader: ReaderProcess
) -> None:
    read = await reader.read(office.hostile(kind)[name]())
    assert read.is_cut
    assert read.paragraphs[0] == first


async def test_strings_by_indexes_that_are_none_are_left_out(reader: ReaderProcess) -> None:
    data = office.OWN["xlsx"]["strings with indexes that are none"]()
    assert await lines(reader, data) == ("# s", "…", "…", "…", "…", "x")
