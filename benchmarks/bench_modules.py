"""What each processing module costs beyond those that every crawl has, in µs a page.

Usage: PYTHONPATH=src python benchmarks/bench_modules.py [DIRECTORY OF HTML FILES]
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from bench_links import generated, standard_modules
from pypdf import PdfWriter
from pypdf.annotations import Link

from gossamer.model.pages import Findings, Page
from gossamer.ports import ProcessingModule
from gossamer.stages.process.chain import Modules
from gossamer.stages.process.choice import MODULES
from gossamer.stages.process.options import ProcessOptions

DOCUMENTATION = Path("/usr/share/doc/python3.11/html")
PAGE_BYTES_MAX = 50_000
ROUNDS = 5
OF_HTML = ("embeds", "tags", "metadata", "language", "main_text", "markdown")


def made(name: str, options: ProcessOptions) -> ProcessingModule:
    module, _, attribute = MODULES[name].partition(":")
    maker: Callable[[ProcessOptions], ProcessingModule] = getattr(importlib.import_module(module), attribute)
    return maker(options)


def seconds(work: Callable[[], object]) -> float:
    spent = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
    return min(spent)


def html_pages(directory: Path) -> list[Page]:
    bodies = [path.read_bytes() for path in sorted(directory.rglob("*.html"))]
    bodies = [body for body in bodies if len(body) < PAGE_BYTES_MAX]
    if not bodies:
        bodies = generated()
    return [Page(f"https://e.example/d/{n}.html", "text/html", "utf-8", (), body) for n, body in enumerate(bodies)]


def other_pages() -> dict[str, list[Page]]:
    css = b"".join(b".c%d { color: red; background: url(i/%d.png) no-repeat }\n" % (n, n) for n in range(200))
    text = b"".join(b"Some words about https://e.example/%d, and more of them in a line.\n" % n for n in range(150))
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x20\0\0\0\x20\x08\2\0\0\0\0\0\0\0\0\0\x40\0IDAT" + bytes(16_388)
    gif = (
        b"GIF89a\x20\0\x20\0\0\0\0"
        + (b"!\xf9\4\0\0\0\0\0" + b",\0\0\0\0\x20\0\x20\0\0\2" + (b"\xff" + bytes(255)) * 8 + b"\0") * 5
    )
    return {
        "embeds (stylesheet, 11 KB, 200 addresses)": [Page("https://e.example/a.css", "text/css", "", (), css)] * 50,
        "text_links (11 KB, 150 addresses)": [Page("https://e.example/a.txt", "text/plain", "", (), text)] * 50,
        "image (PNG)": [Page("https://e.example/a.png", "image/png", "", (), png)] * 50,
        "image (GIF, 5 frames of 2 KB)": [Page("https://e.example/a.gif", "image/gif", "", (), gif)] * 50,
    }


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENTATION
    pages, options = html_pages(directory), ProcessOptions()
    standard = Modules(standard_modules(options), options)
    base = seconds(lambda: [standard.process(page) for page in pages])
    size = sum(len(page.body) for page in pages) / len(pages) / 1000
    print(f"{len(pages)} pages of {size:.0f} KB; without more modules {base / len(pages) * 1e6:.0f} µs a page")
    print("| module | µs a page |")
    print("| --- | --: |")
    for name in OF_HTML:
        modules = Modules([*standard_modules(options), made(name, options)], options)
        modules.process(pages[0])
        more = seconds(lambda modules=modules: [modules.process(page) for page in pages]) - base
        print(f"| {name} | {more / len(pages) * 1e6:.0f} |")
    for name, others in other_pages().items():
        module = made(name.partition(" ")[0], options)
        spent = seconds(lambda module=module, others=others: [module.process(page, Findings()) for page in others])
        print(f"| {name} | {spent / len(others) * 1e6:.0f} |")
    pdf(options)


def pdf(options: ProcessOptions) -> None:
    writer, out = PdfWriter(), BytesIO()
    for n in range(20):
        writer.add_blank_page(100, 100)
        for i in range(10):
            writer.add_annotation(n, Link(rect=(0, 0, 9, 9), url=f"https://e.example/{n}/{i}"))
    writer.write(out)
    page, module = (
        Page("https://e.example/a.pdf", "application/pdf", "", (), out.getvalue()),
        made("pdf_links", options),
    )
    spent = seconds(lambda: module.process(page, Findings()))
    print(f"| pdf_links (20 pages, 200 links; in a process of its own) | {spent * 1e6:.0f} |")


if __name__ == "__main__":
    main()
