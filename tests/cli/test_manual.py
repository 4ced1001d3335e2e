"""The manual pages show every command with its options, and are made from the table of commands."""

from __future__ import annotations

import re
import subprocess

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from gossamer.cli.main import tree
from tests import manual

PAGES = sorted(manual.PAGES.glob("*.1"))


def test_the_pages_are_up_to_date() -> None:
    written = {path.name: path.read_text(encoding="ascii") for path in PAGES}
    assert written == manual.pages(), "`make docs` writes them"


@pytest.mark.heavy
def test_the_reference_of_commands_is_up_to_date() -> None:
    written = manual.REFERENCE.read_text(encoding="utf-8")
    assert written == manual.reference(written), "`make docs` writes it"


@pytest.mark.heavy
@pytest.mark.long
def test_notes_stay_and_what_was_changed_by_hand_does_not() -> None:
    written = (
        "# Commands\n\nOpening.\n\n## `gossamer gone`\n\n## `gossamer why DIR`\n\nMine.\n\n<!-- notes -->\n\nA note.\n"
    )
    made = manual.reference(written)
    assert made.startswith("# Commands\n\nOpening.\n\n## `gossamer ")
    assert "gossamer gone" not in made
    assert "Mine." not in made
    section = made.partition("## `gossamer why DIR URL`")[2].partition("\n## ")[0]
    assert "Explain the state of one URL." in section
    assert section.endswith("<!-- notes -->\n\nA note.\n")


def bold(page: str) -> set[str]:
    """Return the words that a page shows in bold, as a reader sees them."""
    text = (manual.PAGES / page).read_text(encoding="ascii").replace("\\-", "-")
    return {word for shown in re.findall(r"\\fB(.*?)\\fR", text) for word in re.split(r"[, ]+", shown)}


def test_every_command_and_option_is_on_a_page() -> None:
    top = typer.main.get_command(tree())
    assert isinstance(top, TyperGroup)
    assert bold("gossamer.1") >= {*top.commands, "--version", "--help"}
    for name, command in top.commands.items():
        shown = bold(f"gossamer-{name}.1")
        inner = list(command.commands.values()) if isinstance(command, TyperGroup) else []
        for one in [command, *inner]:
            assert isinstance(one, TyperCommand | TyperGroup)
            public = [parameter for parameter in one.params if not getattr(parameter, "hidden", False)]
            assert shown >= {option for parameter in public for option in parameter.opts if option[0] == "-"}
            assert one.name in shown


@pytest.mark.parametrize("text", ["a - b", ".so /x", "'x", "C:\\x", "a…b"])
def test_text_is_shown_as_it_is(text: str) -> None:
    roff = manual._text(text)
    assert roff.isascii()
    assert not roff.startswith((".", "'"))
    shown = roff.removeprefix("\\&").replace("\\-", "-").replace("\\[u2026]", "…").replace("\\e", "\\")
    assert shown == text


@pytest.mark.acceptance
def test_the_formatter_has_no_warning() -> None:
    assert PAGES
    for page in PAGES:
        done = subprocess.run(
            ["groff", "-ww", "-man", "-Tutf8", "-P-cbou", page], capture_output=True, text=True, check=True, timeout=60
        )
        assert done.stderr == "", page.name
        assert "EXIT STATUS" in done.stdout
