"""Write the manual pages in `man/` and the reference of commands from their table: `python -m tests.manual`.

`gossamer.1` lists the commands; each command has a page of its own, and a group of commands one page for all of them.
The wheel installs the pages in `share/man/man1`. They follow man(7) and man-pages(7).

In `docs/reference/commands.md` the text before the first command, and in a section all after the mark
`<!-- notes -->`, is written by people and kept. The rest is made from the help.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import typer
from typer.core import TyperCommand, TyperGroup

from gossamer.cli.main import tree
from gossamer.cli.output import Exit
from gossamer.model.product import __version__

PAGES = Path(__file__).parents[1] / "man"
REFERENCE = Path(__file__).parents[1] / "docs/reference/commands.md"
NOTES = "<!-- notes -->"
SHARED_MIN = 6
"""Options that a command shares with `crawl` from which on they are only named."""
FILES = (
    ("crawl.toml", "the effective configuration"),
    ("warc/", "what servers sent, in WARC 1.1"),
    ("pages/, links/", "tables in Parquet"),
    ("index.cdxj", "the index of the archive"),
    ("state/", "the store from which the crawl continues"),
    ("logs/", "errors of pages and servers in info.log, those of Gossamer in critical.log"),
)


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    top = typer.main.get_command(tree())
    assert isinstance(top, TyperGroup)
    made = {"gossamer.1": _page("gossamer", top, [f"gossamer-{name}" for name in sorted(top.commands)])}
    for name, command in top.commands.items():
        made[f"gossamer-{name}.1"] = _page(f"gossamer {name}", command, ["gossamer"])
    return made


def _page(name: str, command: TyperCommand | TyperGroup, related: list[str]) -> str:
    title = name.replace(" ", "-")
    first, *more = _paragraphs(command)
    summary = _text(first.partition(". ")[0].rstrip("."))
    lines = [
        '.\\" Made from the table of commands by `make docs`.',
        f'.TH {title.upper()} 1 "" "Gossamer {__version__}" "Gossamer"',
        ".SH NAME",
        f"{_text(title)} \\- {summary[0].lower()}{summary[1:]}",
        ".SH SYNOPSIS",
        *_synopsis(name, command),
        ".SH DESCRIPTION",
        _text(first),
        *(line for text in more for line in (".PP", _text(text))),
        *_options(name, command),
    ]
    if isinstance(command, TyperGroup):
        lines += [".SH COMMANDS"]
        for inner, one in sorted(command.commands.items()):
            if name == "gossamer":
                lines += [".TP", f"\\fB{_text(inner)}\\fR", _text(_paragraphs(one)[0])]
            else:
                lines += [f".SS {_text(name)} {_text(inner)}", *_synopsis(f"{name} {inner}", one)]
                lines += [line for text in _paragraphs(one) for line in (".PP", _text(text))]
                lines += _options(f"{name} {inner}", one, ".PP\n\\fI{}\\fR")
    lines += [".SH EXIT STATUS"]
    for status in Exit:
        lines += [".TP", f"\\fB{status.value}\\fR", _text(status.meaning)]
    if name == "gossamer":
        lines += [".SH FILES", "In the directory of a crawl:"]
        for file, what in FILES:
            lines += [".TP", f"\\fI{_text(file)}\\fR", _text(what)]
    lines += [".SH SEE ALSO", ",\n".join(f".BR {_text(one)} (1)" for one in related)]
    return "\n".join(lines) + "\n"


def _synopsis(name: str, command: TyperCommand | TyperGroup) -> list[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    pieces = [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in command.collect_usage_pieces(context)]
    return [f"\\fB{_text(name)}\\fR \\fI{_text(' '.join(pieces))}\\fR"]


def _options(name: str, command: TyperCommand | TyperGroup, heading: str = ".SH {}") -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    for title, kind in (("ARGUMENTS", "argument"), ("OPTIONS", "option")):
        found = [one.get_help_record(context) for one in command.get_params(context) if one.param_type_name == kind]
        records = [record for record in found if record is not None]
        if records:
            yield heading.format(title if heading.startswith(".SH") else title.capitalize())
        for word, meaning in records:
            yield ".TP"
            yield f"\\fB{_text(word.partition(' <')[0])}\\fR"
            yield _text(" ".join(meaning.split()))


def _paragraphs(command: TyperCommand | TyperGroup) -> list[str]:
    return [" ".join(text.split()) for text in (command.help or "").split("\n\n")]


def _text(text: str) -> str:
    """Return text as roff shows it unchanged, with the text between backquotes in bold."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", text)
    text = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in text)
    return re.sub(r"^([.'])", r"\\&\1", text)


def reference(written: str) -> str:
    """Return the reference of commands with the notes that people wrote in `written`."""
    opening, *sections = re.split(r"^(?=## `gossamer )", written, flags=re.MULTILINE)
    notes = {_named(section): section.partition(NOTES)[2] for section in sections}
    order = list(notes)  # A new command is the last, until its section is moved.
    leaves = sorted(_leaves(), key=lambda leaf: order.index(leaf[0]) if leaf[0] in notes else len(order))
    return opening + "".join(_section(name, one, notes.get(name, "\n")) for name, one in leaves)


def _named(section: str) -> str:
    """Return the command of a section: the words in small letters after the program's name."""
    found = re.match(r"## `gossamer ([a-z]+(?: [a-z]+)?)", section)
    assert found is not None, section
    return found[1]


def _leaves() -> Iterator[tuple[str, TyperCommand]]:
    top = typer.main.get_command(tree())
    assert isinstance(top, TyperGroup)
    for name, command in top.commands.items():
        inner = command.commands if isinstance(command, TyperGroup) else {"": command}
        for under, one in inner.items():
            assert isinstance(one, TyperCommand)
            yield f"{name} {under}".strip(), one


def _section(name: str, command: TyperCommand, notes: str) -> str:
    context = command.make_context(name, [], resilient_parsing=True)
    pieces = [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in command.collect_usage_pieces(context)[1:]]
    own, shared = _records(name, command)
    table = [f"| {word} | {meaning} |" for word, meaning in own]
    parts = [f"## `{' '.join(['gossamer', name, *pieces]).replace('...', '…')}`", *_paragraphs(command)]
    parts += ["\n".join(["| option | meaning |", "| --- | --- |", *table])] if table else []
    parts += [f"As for [`crawl`](#gossamer-crawl-seed): {', '.join(shared)}."] if shared else []
    notes = notes.strip()
    return "\n\n".join([*parts, *([NOTES, notes] if notes else [])]) + "\n\n"


def _records(name: str, command: TyperCommand) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the rows of a command's table, and the options that it has from `crawl`, if they are many."""
    crawl = dict(_leaves())["crawl"]
    context = command.make_context(name, [], resilient_parsing=True)
    known = {_row(one.get_help_record(context)) for one in crawl.params}
    rows = [(one.opts, _row(one.get_help_record(context))) for one in command.params]
    shared = [f"`{opt}`" for opts, row in rows if row in known for opt in opts]
    if name == "crawl" or len(shared) < SHARED_MIN:
        known, shared = set(), []
    return [row for _, row in rows if row[1] and row not in known], shared


def _row(record: tuple[str, str] | None) -> tuple[str, str]:
    if record is None:
        return "", ""
    word, meaning = record
    codes = [f"`{code}`" for code in word.partition(" <")[0].split(", ")]
    codes = codes if len(codes) == 1 else [codes[1], codes[0]]
    meaning = re.sub(r"(?<!`)(--mode offline|--[a-z][a-z-]*)", r"`\1`", " ".join(meaning.split()))
    return ", ".join(codes), re.sub(r"\s+\[required\]|\|", lambda m: "\\|" if m[0] == "|" else "", meaning)


def main() -> None:
    """Write the pages, and delete those of commands that are gone."""
    REFERENCE.write_text(reference(REFERENCE.read_text(encoding="utf-8")), encoding="utf-8")
    PAGES.mkdir(exist_ok=True)
    made = pages()
    for path in PAGES.glob("*.1"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (PAGES / name).write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
