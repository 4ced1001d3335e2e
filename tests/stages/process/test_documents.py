"""Documents: text, links and metadata of files that are no pages, and what hostile ones cost."""

from __future__ import annotations

import io
import random
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from gossamer.model.pages import Findings, Page
from gossamer.ports import ProcessingModule
from gossamer.stages.process import mail, pdf
from gossamer.stages.process.documents import XLSX, Documents
from gossamer.stages.process.mail import Mail
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.pdf import PdfLinks, PdfText
from gossamer.world.spill import Spills

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ODT = "application/vnd.oasis.opendocument.text"
EPUB = "application/epub+zip"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
CORE = (
    '<cp:coreProperties xmlns:cp="c" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="t">'
    "<dc:title>Yearly  report</dc:title><dc:creator>A. Writer</dc:creator>"
    "<dcterms:created>2024-03-01T10:00:00Z</dcterms:created><dcterms:modified>2024-04-02T11:00:00Z</dcterms:modified>"
    "</cp:coreProperties>"
)


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()


def docx(body: str, **more: str) -> bytes:
    document = f'<?xml version="1.0"?><w:document {W} {R}><w:body>{body}</w:body></w:document>'
    return packed({"word/document.xml": document, "docProps/core.xml": CORE, **more})


def odt(body: str) -> bytes:
    names = 'xmlns:office="o" xmlns:text="t" xmlns:table="b" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return packed({"content.xml": f"<office:document-content {names}>{body}</office:document-content>"})


def looked(module: ProcessingModule, body: bytes, media_type: str, **options: int) -> Findings:
    findings = Findings()
    made = type(module)(ProcessOptions(**options))  # type: ignore[call-arg, arg-type]
    made.process(Page("http://a.example/file", media_type, "", (), body), findings)
    return findings


OFFICE = "application/vnd.openxmlformats-officedocument"


def test_hidden_runs_of_a_word_document_are_left_out() -> None:
    body = (
        "<w:p><w:pPr><w:rPr><w:vanish/></w:rPr></w:pPr><w:r><w:t>Shown</w:t></w:r>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>MARK</w:t></w:r>"
        '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t> too.</w:t></w:r></w:p>'
    )
    found = looked(Documents(), docx(body), DOCX)
    assert (found.text, found.columns["hidden_chars"]) == ("Shown too.", 4)


def pptx(*slides: str, attributes: str = 'id="256" r:id="r{}"') -> bytes:
    numbers = range(len(slides))
    order = "".join(f"<p:sldId {attributes.format(n)}/>" for n in reversed(numbers))
    relations = "".join(f'<Relationship Id="r{n}" Target="slides/slide{n}.xml"/>' for n in numbers)
    link = '<Relationships xmlns="p"><Relationship Id="rId1" Target="https://link.example/"/></Relationships>'
    return packed(
        {
            "docProps/core.xml": CORE,
            "ppt/presentation.xml": f'<p:p xmlns:p="p" {R}><p:sldIdLst>{order}</p:sldIdLst></p:p>',
            "ppt/_rels/presentation.xml.rels": f'<Relationships xmlns="p">{relations}</Relationships>',
            **{f"ppt/slides/slide{n}.xml": slide for n, slide in enumerate(slides) if slide},
            "ppt/slides/_rels/slide0.xml.rels": link,
        }
    )


def slide(body: str, show: str = "1") -> str:
    return f'<p:sld xmlns:p="p" xmlns:a="a" {R} show="{show}"><p:txBody>{body}</p:txBody></p:sld>'


@pytest.mark.parametrize("attributes", ['id="256" r:id="r{}"', 'r:id="r{}" id="256"'])
@pytest.mark.parametrize("kind", ["presentation", "slideshow"])
def test_slides_are_read_in_their_order(kind: str, attributes: str) -> None:
    cells = "<a:tc><a:p><a:r><a:t>one</a:t></a:r></a:p></a:tc><a:tc><a:p><a:t>two</a:t></a:p></a:tc>"
    table = f"<a:tbl><a:tr>{cells}</a:tr></a:tbl>"
    first = slide(f'<a:p><a:r><a:rPr><a:hlinkClick r:id="rId1"/></a:rPr><a:t>Last words</a:t></a:r></a:p>{table}')
    hidden = slide("<a:p><a:r><a:t>MARK</a:t></a:r></a:p>", show="0")
    title = slide("<a:p><a:r><a:t>First</a:t></a:r><a:br/><a:r><a:t>slide</a:t></a:r></a:p>")
    found = looked(Documents(), pptx(first, hidden, title, attributes=attributes), f"{OFFICE}.presentationml.{kind}")
    assert (found.text, found.title) == ("First\nslide\nLast words\none\ttwo", "Yearly report")
    assert [link.url for link in found.links] == ["https://link.example/"]
    assert found.columns["document"] == "whole"


def test_a_presentation_that_lacks_a_slide_is_not_whole() -> None:
    found = looked(Documents(), pptx(slide("<a:p><a:t>One</a:t></a:p>"), ""), f"{OFFICE}.presentationml.presentation")
    assert (found.text, found.columns["document"]) == ("One", "damaged")


def xlsx(rows: str, hidden: str = "") -> bytes:
    names = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    sheets = '<sheet name="Kilns" sheetId="1" r:id="r1"/><sheet name="Secret" sheetId="2" state="hidden" r:id="r2"/>'
    return packed(
        {
            "_rels/.rels": f'<Relationships xmlns="{package}"><Relationship Id="r1" Type="{office}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f"<workbook {names} {R}><sheets>{sheets}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}"><Relationship Id="r1" '
            f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="r2" '
            f'Type="{office}/worksheet" Target="worksheets/sheet2.xml"/></Relationships>',
            "xl/worksheets/sheet1.xml": f"<worksheet {names}><sheetData>{rows}</sheetData></worksheet>",
            "xl/worksheets/sheet2.xml": f"<worksheet {names}><sheetData>{hidden}</sheetData></worksheet>",
        }
    )


def test_a_workbook() -> None:
    rows = (
        '<row r="1"><c r="A1" t="inlineStr"><is><t>Fired  at</t></is></c><c r="B1"><v>1280</v></c>'
        '<c r="C1"><v>0.5</v></c></row><row r="2"><c r="A2" t="inlineStr"><is><t>see https://kiln.example/x</t></is></c>'
        '<c r="B2" t="b"><v>1</v></c></row>'
    )
    hidden = '<row r="1"><c r="A1" t="inlineStr"><is><t>MARK</t></is></c></row>'
    found = looked(Documents(), xlsx(rows, hidden), XLSX)
    assert found.text == "Kilns\nFired at\t1280\t0.5\nsee https://kiln.example/x\tTrue"
    assert [link.url for link in found.links] == ["https://kiln.example/x"]
    assert found.columns["document"] == "whole"


def test_a_damaged_workbook_and_one_that_unpacks_to_much() -> None:
    whole = xlsx("<row/>")
    assert looked(Documents(), packed({"a": b"x"}), XLSX).columns["document"] == "damaged"
    assert looked(Documents(), whole[:-40], XLSX).columns["document"] == "damaged"
    big = packed({"xl/worksheets/sheet1.xml": b" " * 33_000_000})
    assert looked(Documents(), big, XLSX).columns["document"] == "cut"


@pytest.mark.parametrize("kind", ["spreadsheet", "presentation"])
def test_other_open_documents(kind: str) -> None:
    row = "".join(f"<table:table-cell><text:p>{text}</text:p></table:table-cell>" for text in ("one", "2"))
    body = f"<table:table><table:table-row>{row}</table:table-row></table:table><text:p>End.</text:p>"
    found = looked(Documents(), odt(body), f"application/vnd.oasis.opendocument.{kind}")
    assert (found.text, found.columns["document"]) == ("one\t2\nEnd.", "whole")


@pytest.mark.parametrize("media_type", ["application/rtf", "text/rtf"])
def test_an_rtf_file(media_type: str) -> None:
    body = (
        rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\info{\title The kiln}{\author A. Writer}}Fired at \'e9 "
        rb"{\v MARK}\u8364? https://kiln.example/x\par One\cell two\row}"
    )
    found = looked(Documents(), body, media_type)
    assert found.text == "Fired at é € https://kiln.example/x\nOne|two"
    assert [link.url for link in found.links] == ["https://kiln.example/x"]
    assert looked(Documents(), b"no RTF", media_type).columns["document"] == "damaged"


def epub(*chapters: str, spine: int = 0) -> bytes:
    numbers = range(max(len(chapters), spine))
    items = "".join(f'<item id="i{n}" href="c{n}.xhtml"/>' for n in numbers)
    references = "".join(f'<itemref idref="i{n}"/>' for n in numbers)
    parts = {f"c{n}.xhtml": chapter for n, chapter in enumerate(chapters)}
    container = '<c><rootfile full-path="c.opf"/></c>'
    return packed({"META-INF/container.xml": container, "c.opf": f"<p>{items}{references}</p>", **parts})


@pytest.mark.parametrize(
    "chapter",
    [
        "<head><title/></head><body><p>MARK</p></body>",
        "<head><title>t</title><script src='x.js'/></head><body><p>MARK</p></body>",
        "<head><script data-x='a>b' src=\"/x/y.js\" /></head><body><p>MARK</p></body>",
        "<head><style\ntype='text/css'\n/></head><body><p>MARK</p></body>",
        "<body><textarea name='x'/><iframe src='/x'/><p>MARK</p></body>",
        "<body><template/><noscript/><select/><p>MARK</p></body>",
        "<body><p><![CDATA[MARK]]></p></body>",
        "<body><!-- <![CDATA[ --><p>MARK</p><!-- ]]> --></body>",
        "<head><script>//<![CDATA[\nif (a < b) {}\n//]]></script></head><body>MARK</body>",
    ],
)
def test_a_chapter_is_read_as_xml(chapter: str) -> None:
    found = looked(Documents(), epub(f'<html xmlns="http://www.w3.org/1999/xhtml">{chapter}</html>'), EPUB)
    assert (found.text, found.columns["document"]) == ("MARK", "whole")


def test_a_book_that_lacks_a_chapter_or_its_text_is_not_whole() -> None:
    shown = "<html><body>MARK</body></html>"
    for body in (epub(shown, spine=2), epub(shown, "<html><head><title></head><body><p>lost</p></body></html>")):
        found = looked(Documents(), body, EPUB)
        assert (found.text, found.columns["document"]) == ("MARK", "damaged")
    picture = "<html><head><title>t</title></head><body><img src='a.png'/></body></html>"
    assert looked(Documents(), epub(shown, picture), EPUB).columns["document"] == "whole"


def test_a_word_document() -> None:
    body = (
        '<w:p><w:pPr><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr><w:r><w:t>First </w:t></w:r>'
        '<w:r><w:t xml:space="preserve">words</w:t><w:tab/><w:t>behind</w:t><w:br/><w:t>below</w:t></w:r></w:p>'
        '<w:p><w:hyperlink r:id="rId1"><w:r><w:t>a link</w:t></w:r></w:hyperlink>'
        "<w:del><w:delText>gone</w:delText></w:del>"
        '<w:r><w:instrText> HYPERLINK "https://field.example/x" </w:instrText></w:r></w:p>'
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>one</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>two</w:t></w:r></w:p></w:tc>"
        "</w:tr></w:tbl>"
    )
    relations = (
        '<Relationships xmlns="p"><Relationship Id="rId1" Target="https://link.example/"/>'
        '<Relationship Id="rId2" Target="media/image.png"/></Relationships>'
    )
    notes = f"<w:footnotes {W}><w:footnote><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote></w:footnotes>"
    more = {"word/_rels/document.xml.rels": relations, "word/footnotes.xml": notes}
    findings = looked(Documents(), docx(body, **more), DOCX)
    assert findings.text == "First words\tbehind\nbelow\na link\none\ttwo\nA note."
    assert [link.url for link in findings.links] == ["https://link.example/", "https://field.example/x"]
    assert findings.title == "Yearly report"
    assert findings.text_method == "document"
    assert findings.columns == {
        "main_text": findings.text, "document": "whole", "byline": "A. Writer",
        "published": datetime(2024, 3, 1, 10, tzinfo=UTC), "modified": datetime(2024, 4, 2, 11, tzinfo=UTC),
    }  # fmt: skip


def test_an_open_document_text() -> None:
    body = (
        "<text:tracked-changes><text:p>removed</text:p></text:tracked-changes><text:h>Head</text:h>"
        '<text:p>Some <text:span>words</text:span><text:s/>and <text:a xlink:href="https://o.example/">a link</text:a>'
        "<office:annotation><text:p>remark</text:p></office:annotation>.</text:p>"
        "<table:table-row><table:table-cell><text:p>1</text:p></table:table-cell>"
        "<table:table-cell><text:p>2</text:p></table:table-cell></table:table-row>"
    )
    findings = looked(Documents(), odt(body), ODT)
    assert findings.text == "Head\nSome words and a link.\n1\t2"
    assert [link.url for link in findings.links] == ["https://o.example/"]


def test_a_book_has_its_chapters_in_the_order_of_the_spine() -> None:
    package = (
        '<package xmlns:dc="d"><metadata><dc:title>A Book</dc:title><dc:creator>Author</dc:creator></metadata>'
        '<manifest><item id="b" href="text/b%20b.xhtml"/><item id="a" href="../a.xhtml"/></manifest>'
        '<spine><itemref idref="a"/><itemref idref="b"/><itemref idref="none"/></spine></package>'
    )
    book = packed(
        {
            "META-INF/container.xml": '<container><rootfile full-path="OEBPS/p.opf"/></container>',
            "OEBPS/p.opf": package,
            "OEBPS/text/b b.xhtml": "<html><head><title/><script src='s'/></head>"
            "<body><p>Second.</p><a href='https://e.example/'>x</a></body></html>",
            "a.xhtml": "<html><head><title>t</title></head><body><h1>First</h1><a href='b.xhtml'>on</a></body></html>",
        }
    )
    findings = looked(Documents(), book, EPUB)
    assert findings.text == "First\non\nSecond.\nx"
    assert [link.url for link in findings.links] == ["https://e.example/"]
    assert (findings.title, findings.columns["byline"]) == ("A Book", "Author")


def message(subject: str, text: str, html: str = "") -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "Ann <ann@a.example>", "list@a.example", subject
    made["Date"] = "Fri, 01 Mar 2024 10:00:00 +0000"
    made.set_content(text)
    if html:
        made.add_alternative(html, subtype="html")
    made.add_attachment(b"secret", maintype="text", subtype="plain", filename="notes.txt")
    return made


def test_a_message() -> None:
    text = "Grüße, see https://m.example/x.\n"
    findings = looked(Mail(), message("Über alles", text, "<p>html</p>").as_bytes(), "message/rfc822")
    assert findings.text.splitlines() == [
        "From: Ann <ann@a.example>", "To: list@a.example", "Date: Fri, 01 Mar 2024 10:00:00 +0000",
        "Subject: Über alles", "Grüße, see https://m.example/x.",
    ]  # fmt: skip
    assert [link.url for link in findings.links] == ["https://m.example/x"]
    assert (findings.title, findings.columns["published"]) == ("Über alles", datetime(2024, 3, 1, 10, tzinfo=UTC))


def test_an_archive_of_messages() -> None:
    bodies = [
        message("One", "first\n>From here\n"),
        message("Two", "", "<p>only <a href='https://h.example/'>html</a>"),
    ]
    data = b"".join(b"From ann@a.example Fri Mar  1 10:00:00 2024\n" + one.as_bytes() + b"\n\n" for one in bodies)
    data = data.replace(b"\n>From here", b"\n>From here\nFrom the middle of a paragraph")
    findings = looked(Mail(), data, "application/mbox")
    assert findings.text.count("Subject: ") == 2
    assert "\nFrom here\nFrom the middle of a paragraph\n" in findings.text
    assert "secret" not in findings.text
    assert findings.columns["document"] == "whole"


def pdf_of(*pages: bytes, title: str = "") -> bytes:
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for content in pages:
        page = writer.add_blank_page(600, 800)
        stream = DecodedStreamObject()
        stream.set_data(content)
        page[NameObject("/Contents")] = writer._add_object(stream.flate_encode())
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    writer.add_metadata({"/Title": title, "/CreationDate": "D:20240301100000Z"})
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def shown(*texts: tuple[int, int, str]) -> bytes:
    return b"".join(b"BT /F1 10 Tf %d %d Td (%s) Tj ET\n" % (x, y, text.encode()) for x, y, text in texts)


def test_a_pdf() -> None:
    prose = shown((50, 700, "A long sentence that fills most of a line."), (50, 680, "Another sentence below."))
    table = shown(*((50 + 150 * column, 700 - 20 * row, f"r{row}c{column}") for row in range(8) for column in range(3)))
    findings = looked(PdfText(), pdf_of(prose, table, title="Of spiders"), "application/pdf")
    lines = findings.text.splitlines()
    assert lines[:2] == ["A long sentence that fills most of a line.", "Another sentence below."]
    assert [line.split() for line in lines[2:]] == [[f"r{row}c{column}" for column in range(3)] for row in range(8)]
    assert findings.title == "Of spiders"
    assert findings.columns["published"] == datetime(2024, 3, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("body", "method"),
    [
        (pdf_of(b"q 600 0 0 800 0 0 cm /Im1 Do Q"), "image"),
        (pdf_of(shown((50, 700, "words"))), "document"),
        (b"%PDF-1.7 and nothing more", "document"),
    ],
    ids=["scanned", "text", "damaged"],
)
def test_a_scanned_pdf_says_so(body: bytes, method: str) -> None:
    assert looked(PdfText(), body, "application/pdf").text_method == method


def test_what_is_encrypted_or_damaged_says_so() -> None:
    writer = PdfWriter(clone_from=io.BytesIO(pdf_of(shown((50, 700, "words")))))
    writer.encrypt("password", algorithm="RC4-128")
    locked = io.BytesIO()
    writer.write(locked)
    manifest = '<manifest xmlns:m="m"><m:file-entry><m:encryption-data/></m:file-entry></manifest>'
    whole = docx("<w:p><w:r><w:t>words</w:t></w:r></w:p>")
    cases: list[tuple[ProcessingModule, str, bytes, str]] = [
        (PdfText(), "application/pdf", locked.getvalue(), "encrypted"),
        (PdfText(), "application/pdf", b"%PDF-1.7 and nothing more", "damaged"),
        (Documents(), DOCX, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "encrypted"),
        (Documents(), ODT, packed({"META-INF/manifest.xml": manifest, "content.xml": b"\x01\x02"}), "encrypted"),
        (Documents(), DOCX, b"PK\x03\x04 no archive", "damaged"),
        (Documents(), DOCX, whole[:-60], "damaged"),
        (Documents(), DOCX, packed({"other.xml": "<a/>"}), "damaged"),
        (Documents(), DOCX, docx("<w:p><w:r><w:t>before</w:t></w:p>"), "damaged"),
        (Documents(), EPUB, packed({"META-INF/container.xml": "<container/>"}), "damaged"),
    ]
    for module, media_type, body, says in cases:
        assert looked(module, body, media_type).columns["document"] == says, (media_type, body[:40])


ENTITIES = '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY f SYSTEM "file:///etc/passwd">]>'


@pytest.mark.promise("Bounds", "Untrusted documents cost bounded memory; their XML declares no entities.")
def test_no_entity_is_expanded_and_no_file_is_opened() -> None:
    body = f"{ENTITIES}<w:document {W}><w:body><w:p><w:r><w:t>&b;&f;</w:t></w:r></w:p></w:body></w:document>"
    findings = looked(Documents(), packed({"word/document.xml": body}), DOCX)
    assert (findings.text, findings.columns["document"]) == ("", "damaged")


def changed(body: bytes, at: int, value: bytes, mark: bytes = b"PK\x01\x02") -> bytes:
    """A ZIP file with other bytes at a place of its list's first entry, or of its end."""
    place = body.find(mark) + at
    return body[:place] + value + body[place + len(value) :]


def test_a_broken_container_is_damaged() -> None:
    whole = packed({"word/document.xml": f"<w:document {W}><w:p><w:r><w:t>x</w:t></w:r></w:p></w:document>"})
    assert looked(Documents(), whole, DOCX).columns["document"] == "whole"
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("word/document.xml", "<w:document/>")
    for body in (
        changed(whole, 10, b"\x63\0"),  # Packed by an unknown method.
        changed(whole, 16, b"\0\0\0\0"),  # Another check sum.
        changed(whole, 42, b"\xf0\xff\xff\xff"),  # A part beyond the end.
        changed(changed(whole, 46, b"\xff"), 8, b"\0\x08"),  # A name that is not UTF-8.
        changed(whole, 16, b"\xff\xff\xff\xff", b"PK\x05\x06"),  # The list beyond the end.
        other.getvalue(),
        packed({"word/document.xml": '<?xml version="1.0" encoding="klingon"?><w:document/>'}),
    ):
        findings = looked(Documents(), body, DOCX)
        assert (findings.text, findings.columns["document"]) == ("", "damaged")


def test_the_main_part_has_the_name_that_the_package_says() -> None:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    parts = {
        "_rels/.rels": f'<all xmlns="r"><Relationship Type="{kind}" Target="/word/document2.xml"/></all>',
        "word/document2.xml": f"<w:document {W}><w:p><w:r><w:t>second</w:t></w:r></w:p></w:document>",
    }
    assert looked(Documents(), packed(parts), DOCX).text == "second"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_a_chapter_has_its_own_encoding(encoding: str) -> None:
    chapter = f'<?xml version="1.0" encoding="{encoding}"?><html><p>Grüße</p></html>'.encode(encoding)
    package = (
        '<package><manifest><item id="a" href="a.xhtml#top"/></manifest><spine><itemref idref="a"/></spine></package>'
    )
    container = '<container><rootfile full-path="p.opf"/></container>'
    parts: dict[str, str | bytes] = {"META-INF/container.xml": container, "p.opf": package, "a.xhtml": chapter}
    assert looked(Documents(), packed(parts), EPUB).text == "Grüße"


def cells(count: int) -> bytes:
    """A table of `count` cells, written without holding it."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("word/document.xml", "w", force_zip64=True) as part,
    ):
        part.write(f"<w:document {W}><w:body><w:tbl>".encode())
        row = b"<w:tr>" + b"<w:tc><w:p><w:r><w:t>1</w:t></w:r></w:p></w:tc>" * 100 + b"</w:tr>"
        for _ in range(count // 100):
            part.write(row)
        part.write(b"</w:tbl></w:body></w:document>")
    return out.getvalue()


def bomb(size: int) -> bytes:
    """A part that unpacks to `size` bytes within one tag."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("word/document.xml", "w", force_zip64=True) as part,
    ):
        part.write(f"<w:document {W}><w:body>".encode())
        for _ in range(size >> 20):
            part.write(b" " * (1 << 20))
    return out.getvalue()


def directory(parts: int) -> bytes:
    """A ZIP file that lists `parts` parts of no content."""
    one = b"PK\x01\x02" + bytes(24) + struct.pack("<H", 200) + bytes(16) + b"n" * 200
    end = b"PK\x05\x06" + struct.pack("<HHHHLLH", 0, 0, 0xFFFF, 0xFFFF, len(one) * parts, 0, 0)
    return one * parts + end


@pytest.mark.heavy
@pytest.mark.promise("Bounds", "Untrusted documents cost bounded memory; their XML declares no entities.")
@pytest.mark.parametrize("kind", ["cells", "bomb", "directory", "large", "tag"])
def test_hostile_documents_are_cut(kind: str) -> None:
    made = {
        "cells": lambda: cells(1_000_000),
        "bomb": lambda: bomb(300 << 20),
        "tag": lambda: docx(f"<w:p a='{'x' * 30_000_000}'/>"),
        "directory": lambda: directory(40_000),
        "large": lambda: docx(f"<w:p><w:r><w:t>{'word ' * 500_000}</w:t></w:r></w:p>"),
    }[kind]()
    tracemalloc.start()
    try:
        findings = looked(Documents(), made, DOCX, text_bytes_max=100_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert findings.columns["document"] == "cut"
    assert len(findings.text) <= 100_000
    assert peak < 25_000_000


def test_hostile_mail_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    nested = b"Subject: deep\n" + b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (n, n) for n in range(3_000)
    )
    for body, kind in (
        (nested, "message/rfc822"),
        (b"Subject: long\n\n" + b"words " * 1_000_000, "message/rfc822"),
        (b"From a\nSubject: one\n\nx\n\n" * (mail.MESSAGES_MAX + 1), "application/mbox"),
    ):
        findings = looked(Mail(), body, kind)
        assert findings.columns["document"] == "cut"
        assert "Subject: " in findings.text


def test_a_header_is_cut_before_it_is_parsed() -> None:
    for header in (
        b"Subject: " + b"=?utf-8?b?YWFh?= " * 100_000,
        b"From: " + b"(" * 100_000,
        b"To: " + b"a," * 100_000,
    ):
        findings = looked(Mail(), header + b"\nX: y\n\nbody", "message/rfc822")
        assert findings.columns["document"] == "whole"
        assert findings.text.endswith("body")
        assert len(findings.text) < 2 * mail.HEADER_CHARACTERS_MAX


def test_a_message_without_sense_costs_no_other() -> None:
    broken = b"From a\nContent-Type: text/plain" + b'; a*0*="x"' * 1_000 + b"\n\nlost\n\n"
    findings = looked(Mail(), broken + b"From b\nSubject: next\n\nfound\n", "application/mbox")
    assert (findings.text, findings.columns["document"]) == ("Subject: next\nfound", "damaged")


@pytest.mark.parametrize("declared", ["klingon", '"utf\0"', "idna", "zlib", ""])
def test_mail_of_no_known_encoding_is_read_as_what_it_looks_like(declared: str) -> None:
    body = f"Content-Type: text/plain; charset={declared}\n\nGrüße aus München".encode("latin-1")
    assert looked(Mail(), body, "message/rfc822").text == "Grüße aus München"


def pdf_objects(*objects: str, trailer: str = "") -> bytes:
    """A PDF of these objects, the first its catalog."""
    out, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{one}\nendobj\n".encode("latin-1")
    table = f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n" + "".join(f"{at:010} 00000 n \n" for at in places)
    end = f"trailer<</Size {len(places) + 1}/Root 1 0 R{trailer}>>\nstartxref\n{len(out)}\n%%EOF"
    return out + table.encode() + end.encode()


CATALOG, PAGES = "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>"
LEAF = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]%s>>"
CALLS = (
    "<</Type/XObject/Subtype/Form/Resources<</XObject<</X %d 0 R>>>>/Length 60>>stream\n"
    + "/X Do " * 10
    + "\nendstream"
)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"%PDF-1.4 and nothing else",
        pdf_objects(CATALOG, "<</Type/Pages/Kids[2 0 R]/Count 1>>"),
        pdf_objects(CATALOG, PAGES, "<</Type/Pages/Kids[2 0 R]/Count 1>>"),
        pdf_objects(CATALOG, "<</Type/Pages/Kids[3 0 R]/Count 1/Parent 3 0 R>>", LEAF % ""),
        pdf_objects("1 0 R"),
        pdf_objects("<</Type/Catalog/Pages null>>"),
        pdf_objects(CATALOG, f"<</Type/Pages/Kids[{'3 0 R ' * 20_000}]/Count 20000>>", LEAF % ""),
        pdf_objects(CATALOG, PAGES, LEAF % "/Annots 7"),
        pdf_objects(CATALOG, PAGES, LEAF % "/Annots[3 0 R null 5 (x)]/Contents 3 0 R"),
        pdf_objects(CATALOG, PAGES, LEAF % "/Contents 4 0 R", "<</Length 4 0 R>>stream\nBT ET\nendstream"),
        pdf_objects(
            CATALOG, PAGES, LEAF % "/Contents 4 0 R/Resources<</XObject<</X 5 0 R>>>>",
            "<</Length 5>>stream\n/X Do\nendstream", *(CALLS % (6 + n) for n in range(12)), CALLS % 5,
        ),
        pdf_objects(CATALOG + "[" * 20_000 + "]" * 20_000, PAGES),
    ],
)  # fmt: skip
@pytest.mark.long
def test_objects_of_a_pdf_that_make_no_sense_end_nothing(body: bytes) -> None:
    findings = looked(PdfText(), body, "application/pdf")
    assert findings.text == ""
    assert findings.columns["document"] in ("whole", "cut", "damaged")
    assert looked(PdfLinks(), body, "application/pdf").links == []


def test_a_pdf_keeps_its_text_where_what_it_says_of_itself_makes_no_sense() -> None:
    about = "<</Title 5 0 R/Author[1]/CreationDate(D:99)/ModDate(D:20240506)>>"
    text = "<</Length 40>>stream\nBT /F1 10 Tf 5 5 Td (Its text.) Tj ET    \nendstream"
    font = "/Contents 4 0 R/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
    body = pdf_objects(CATALOG, PAGES, LEAF % font, text, about, trailer="/Info 5 0 R")
    findings = looked(PdfText(), body, "application/pdf")
    assert (findings.text, findings.title, findings.columns["document"]) == ("Its text.", "", "whole")
    assert findings.columns["modified"] == datetime(2024, 5, 6, tzinfo=UTC)
    assert "published" not in findings.columns


LINK = "<</Type/Annot/Subtype/Link/A<</S/URI/URI(%s)>>>>"


def test_a_pdf_that_is_cut_keeps_the_links_before_the_cut() -> None:
    leaf = LEAF % "/Annots[4 0 R 5 0 R <</Subtype/Link/A<</S/URI/URI(http://b.example/within)>>>>]"
    packed = zlib.compress(f"99 0 {LINK % 'http://b.example/packed'}".encode()).decode("latin-1")
    objects = f"<</Type/ObjStm/N 1/First 5/Filter/FlateDecode/Length {len(packed)}>>stream\n{packed}\nendstream"
    links = [LINK % "http://b.example/one", LINK % "two"]
    body = pdf_objects(CATALOG, PAGES, leaf, *links, objects, LINK % "http://b.example/last")
    found = {
        size: [link.url for link in looked(PdfLinks(), body[:size], "application/pdf").links]
        for size in (len(body), body.index(b"xref"), body.index(b"last"), body.index(b"ObjStm"))
    }
    whole, unlisted, cut, early = found.values()
    one, within, last = (f"http://b.example/{name}" for name in ("one", "within", "last"))
    assert whole == [one, "http://a.example/two", within]
    assert unlisted == [within, one, last, "http://b.example/packed"]
    assert cut == [within, one, "http://b.example/packed"]
    assert early == [within, one]


def test_a_pdf_of_many_instructions_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "CONTENT_BYTES_MAX", 10_000)
    pages = [shown((50, 700, f"Page {number} of it.")) for number in range(3)]
    findings = looked(PdfText(), pdf_of(*pages, shown((1, 1, "last")) + b"q Q " * 5_000), "application/pdf")
    assert findings.text == "Page 0 of it.\nPage 1 of it.\nPage 2 of it."
    assert findings.columns["document"] == "cut"


def test_a_pdf_that_unpacks_to_much_is_cut() -> None:
    bomb_of_pdf = pdf_of(shown((50, 700, "Before.")), b" " * 100_000_000)
    findings = looked(PdfText(), bomb_of_pdf, "application/pdf")
    assert (findings.text, findings.columns["document"]) == ("Before.", "cut")


def test_a_document_of_100_mb_is_read_where_it_lies(tmp_path: Path) -> None:
    """What is no text in it, such as pictures, is neither unpacked nor held."""
    with (tmp_path / "large").open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(
            "word/document.xml", f"<w:document {W}><w:p><w:r><w:t>the words</w:t></w:r></w:p></w:document>"
        )
        for number in range(100):
            archive.writestr(f"word/media/{number}.png", random.Random(number).randbytes(1 << 20))
    spill = Spills(tmp_path, "sha1").make()
    with (tmp_path / "large").open("rb") as file:
        while piece := file.read(1 << 20):
            spill.write(piece)
    findings = Findings()
    tracemalloc.start()
    try:
        Documents().process(Page("http://a.example/large", DOCX, "", (), b"PK", spill), findings)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert spill.size > 100_000_000
    assert (findings.text, findings.columns["document"]) == ("the words", "whole")
    assert peak < 2_000_000


def test_they_run_in_processes_of_their_own_and_want_their_types_alone() -> None:
    for module in (Documents(), Mail(), PdfText()):
        assert module.isolated
        assert not module.wants("text/html")
        assert not module.wants("application/zip")
    assert all(Documents().wants(kind) for kind in (DOCX, ODT, EPUB))
