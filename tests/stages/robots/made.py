"""Robots.txt files that are made from a seed, with what real files have, and the answers of Google's parser to them.

`google.json` has the answers: for each file one digit for each path, made by googlebot::RobotsMatcher of
github.com/google/robotstxt. `python -m tests.stages.robots.made PROGRAM` writes it; benchmarks/compare_robots.py says
what the program reads and prints. What Gossamer reads otherwise on purpose (docs/reference/robots.md) is not made.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

FILES = 400
ANSWERS = Path(__file__).with_name("google.json")
HOST = "https://example.org"
AGENTS = (
    "*", "* ", "gossamer", "Gossamer", "GOSSAMER/1.0", "gossamer bot", "googlebot", "bingbot", "goss", "gossamer-news",
    "gossamers", "", "Mozilla/5.0", "* gossamer",
)  # fmt: skip
KEYS = {
    "agent": ("User-agent", "user-agent", "USER-AGENT", "User-Agent", "useragent", "user agent"),
    "allow": ("Allow", "allow", "ALLOW"),
    "disallow": ("Disallow", "disallow", "DISALLOW", "Dissallow", "disalow", "Disallaw", "diasllow"),
}
SEGMENTS = ("a", "b", "private", "cgi-bin", "x.html", "img", "%E3%83%84", "~u", "index.php", "A")
PATHS = tuple(
    f"/{first}{rest}"
    for first in ("", "a", "b", "private", "cgi-bin", "x.html", "~u", "A", "%E3%83%84")
    for rest in ("", "/", "/b", "/b/x.html", "?q=1", "/b?sort=1&x=2", ".php", "b")
)


def rule(chance: random.Random) -> str:
    """Return the path of a rule."""
    parts = [chance.choice(SEGMENTS) for _ in range(chance.randint(0, 3))]
    path = "/" + "/".join(parts) + chance.choice(("", "", "/"))
    path = chance.choice(
        (path, path, path, path + "*", path + "$", "/*" + path, path.replace("/", "/*", 1), path + "?")
    )
    return chance.choice((path, path, path, "", "/", "*", "/*.php$", "/*?", "/$", "/**/b", "/*$", path + "*$"))


def line(chance: random.Random) -> str:
    """Return a line of a file."""
    kind = chance.choices(("rule", "agent", "other", "nothing"), (60, 22, 10, 8))[0]
    space = chance.choice((" ", "", "  ", "\t"))
    comment = chance.choice(("", "", "", " # words", "#x"))
    if kind == "rule":
        key = chance.choice(KEYS[chance.choice(("allow", "disallow", "disallow"))])
        return f"{chance.choice(('', '', ' '))}{key}{chance.choice(('', '', ' '))}:{space}{rule(chance)}{comment}"
    if kind == "agent":
        return f"{chance.choice(KEYS['agent'])}:{space}{chance.choice(AGENTS)}{comment}"
    if kind == "other":
        return chance.choice(
            (
                "Crawl-delay: 3",
                "Sitemap: https://example.org/s.xml",
                "Noindex: /x",
                "Host: example.org",
                "rubbish",
                "<html>",
            )
        )
    return comment.strip()


def made(seed: int) -> bytes:
    """Return a file."""
    chance = random.Random(seed)
    end = chance.choice(("\n", "\n", "\r\n", "\r"))
    lines = [line(chance) for _ in range(chance.randint(1, 30))]
    mark = chance.choice((b"", b"", b"", b"\xef\xbb\xbf"))
    return mark + (end.join(lines) + chance.choice((end, ""))).encode()


def main(program: str) -> None:
    asked = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(FILES):
            file = Path(folder) / str(seed)
            file.write_bytes(made(seed))
            asked += [f"@{file}", "!gossamer", *(HOST + path for path in PATHS)]
        done = subprocess.run([program], input="\n".join(asked) + "\n", capture_output=True, text=True, check=True)
    digits, step = done.stdout.strip(), len(PATHS)
    assert len(digits) == FILES * step
    ANSWERS.write_text(json.dumps([digits[at : at + step] for at in range(0, len(digits), step)], indent=0) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
