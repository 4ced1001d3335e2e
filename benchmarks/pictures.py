"""Make the pictures of the documentation: a real crawl of a synthetic web, in a terminal and in Chromium.

python benchmarks/pictures.py        # writes docs/images/terminal.svg and docs/images/dashboard-*.png, in a minute
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from contextlib import suppress
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess

IMAGES = Path(__file__).parents[1] / "docs/images"
CHROMIUM = "/usr/bin/chromium"
WEB = SimwebOptions(seed=3, hosts=150, pages=6_000, latency_s=0.15, shares={"robots_stall": 0})
CRAWL_S = 45
COLUMNS = 96
VIEWS = {
    "dashboard-light": ("light", 1280, 900),
    "dashboard-dark": ("dark", 1280, 900),
    "dashboard-phone": ("light", 390, 844),
}
REDRAWN = re.compile(r"\r\x1b\[2K(?:\x1b\[1A\x1b\[2K)*")
"""How the live view takes its last picture back."""


class Terminal:
    """A command in a pseudo-terminal, and what it wrote there."""

    def __init__(self, *words: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color"}
        arguments = [sys.executable, "-m", "gossamer", *words]
        self.process = subprocess.Popen(arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        self.said = ""
        # Without a reader the terminal's buffer fills, and the command waits.
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError):
            while piece := os.read(self._ours, 65_536):
                self.said += piece.decode(errors="replace")


def shown(said: str) -> str:
    """Return the last picture before the crawl was stopped, and the lines at its end."""
    frames = [frame for frame in REDRAWN.split(said) if "pages" in frame]
    running = [frame for frame in frames if "Stopping" not in frame][-1]
    end = frames[-1].partition("\x1b[?25h")[2]
    text = f"{running.rstrip()}\n^C\n{end}".replace("\r\n", "\n")
    return re.sub(r"\x1b\[\?25[lh]", "", re.sub(r"token=\S+?(?=\x1b|\s)", "token=…", text))


def terminal(command: str, said: str) -> None:
    """Write the picture of the terminal."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {command}\n", style="bold"))
    console.print(Text.from_ansi(shown(said)))
    svg = console.export_svg(title="gossamer crawl", theme=MONOKAI)
    # The fonts of the reader's machine: a page of the documentation loads nothing from elsewhere.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace(
        "Fira Code", "ui-monospace, Menlo, Consolas"
    )
    (IMAGES / "terminal.svg").write_text(svg, encoding="utf-8")


def dashboards(address: str) -> None:
    """Write the pictures of the dashboard."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (scheme, width, height) in VIEWS.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(address)
            page.wait_for_timeout(3_000)
            page.screenshot(path=IMAGES / f"{name}.png")
        browser.close()


def main() -> None:
    """Crawl, look, stop, and write the pictures."""
    with tempfile.TemporaryDirectory() as folder, SimwebProcess(WEB, Path(folder) / "web") as web:
        os.chdir(folder)
        hosts = os.path.relpath(web.hosts_file, folder)
        words = ["crawl", *web.seeds, "--scope", "any", "--contact", "you@example.org", "--hosts", hosts]
        words += ["--allow-private", "--serve", "0"]
        crawling = Terminal(*words)
        time.sleep(CRAWL_S)
        found = re.search(r"http://127\.0\.0\.1:\d+/#token=[\w-]+", crawling.said)
        assert found is not None, crawling.said
        dashboards(found[0])
        crawling.process.send_signal(signal.SIGINT)
        crawling.process.wait(60)
        time.sleep(1)
        terminal(shlex.join(["gossamer", *words]), crawling.said)


if __name__ == "__main__":
    main()
