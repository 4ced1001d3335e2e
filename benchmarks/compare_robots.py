"""Compares our reading of robots.txt files with Google's parser and with three others, and explains each difference.

Usage: PYTHONPATH=src python benchmarks/compare_robots.py FOLDER GOOGLE [AGENT…]
       PYTHONPATH=src python benchmarks/compare_robots.py FOLDER GOOGLE --record FILE

FOLDER holds robots.txt files under any names. GOOGLE is a program around googlebot::RobotsMatcher
(github.com/google/robotstxt): it reads lines and prints one digit for each address. `@PATH` takes a file, `!AGENT` a
product token; every other line is an address, and 1 says that it is allowed.

`--record` writes the answers for `gossamer`, by the hash of each file, with the cause of each difference. The files
themselves belong to their sites. `tests/acceptance/test_robots_corpus.py` compares with the record.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, unquote
from urllib.robotparser import RobotFileParser

from gossamer.stages.robots.rules import RobotsRules

ORIGIN = "https://example.org"
PATHS_MAX = 150
PLAIN = ("/", "/index.html", "/a", "/a/b.html?c=d", "/search?q=x", "/robots.txt", "/wp-admin/admin-ajax.php")
_RULE = re.compile(rb"^\s*(?:dis+al*ow|allow)\s*:?\s*(\S[^\r\n#]*)", re.IGNORECASE | re.MULTILINE)
_VALUE = rb"(?im)^\s*(?:%s)[^\r\n:]*:\s*"
# The lines without which both parsers agree are the cause of a difference; docs/reference/robots.md lists them.
CAUSES = {
    "a rule that begins without /": re.compile(_VALUE % rb"dis+al*ow|diasllow" + rb"(?![/*$\s#]|https?:)[^\r\n]*"),
    "a space or a quotation mark in a rule": re.compile(
        _VALUE % rb"dis+al*ow|allow" + rb"[^\r\n#]*[^\s#][ \t\"][^\r\n]*"
    ),
    "an absolute URL in a rule": re.compile(_VALUE % rb"dis+al*ow|allow" + rb"https?:[^\r\n]*"),
    "Allow: …/index.html": re.compile(_VALUE % rb"allow" + rb"[^\r\n]*/index\.html?[^\r\n]*"),
    "an escape in a rule": re.compile(_VALUE % rb"dis+al*ow|allow" + rb"[^\r\n]*%[0-9A-Fa-f][^\r\n]*"),
    "no colon after the key": re.compile(rb"(?im)^\s*(?:dis+al*ow|allow)\s+[^\r\n]*"),
}


def addresses(text: bytes) -> list[str]:
    """Return addresses that the rules of a file are about: wildcards filled in three ways, with three endings."""
    found = dict.fromkeys(PLAIN)
    for value in _RULE.findall(text):
        rule = quote(value.decode("utf-8", "replace").strip().rstrip("$"), safe="/*?&=%+:;,.!~'()@$#|^{}[]<>\\`")
        if not rule.startswith(("/", "*")):
            rule = "/" + rule
        for fill in ("", "x", "x/y"):
            path = rule.replace("*", fill)
            path = path if path.startswith("/") else "/" + path
            found.update(dict.fromkeys((path, path + "x", path + "/x.html")))
        if len(found) > PATHS_MAX:
            break
    return [ORIGIN + path for path in list(found)[:PATHS_MAX]]


def google(program: str, asked: Sequence[tuple[Path, str, Sequence[str]]]) -> Iterator[str]:
    """Yield the digits that the program prints for each file."""
    lines = "".join(f"@{path}\n!{agent}\n" + "".join(f"{url}\n" for url in urls) for path, agent, urls in asked)
    digits = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.strip()
    at = 0
    for _, _, urls in asked:
        yield digits[at : at + len(urls)]
        at += len(urls)
    assert at == len(digits)


def ours(text: bytes, agent: str, urls: Sequence[str]) -> str:
    rules = RobotsRules.parse(text, agent, origin=ORIGIN)
    return "".join("01"[rules.allows(url)] for url in urls)


def others(text: bytes, agent: str, urls: Sequence[str]) -> dict[str, str]:
    """Return the answers of other open parsers."""
    from protego import Protego  # noqa: PLC0415 - the record needs neither
    from robotexclusionrulesparser import RobotExclusionRulesParser  # noqa: PLC0415

    content, found = text.decode("utf-8", "replace"), {}
    protego, library = Protego.parse(content), RobotFileParser()
    library.parse(content.splitlines())
    found["protego"] = "".join("01"[protego.can_fetch(url, agent)] for url in urls)
    found["urllib.robotparser"] = "".join("01"[library.can_fetch(agent, url)] for url in urls)
    third = RobotExclusionRulesParser()
    third.parse(content)
    found["robotexclusionrulesparser"] = "".join("01"[bool(third.is_allowed(agent, url))] for url in urls)
    return found


def cause(program: str, text: bytes, agent: str, url: str) -> str:
    """Return why an answer differs: the cause whose lines make the difference, or nothing."""
    if url == f"{ORIGIN}/robots.txt":
        return "/robots.txt is always allowed"
    if text[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in text[:2]:
        return "UTF-16"
    left = text
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in CAUSES.items():
            left = lines.sub(b"", left)
            file = Path(folder) / "robots.txt"
            file.write_bytes(left)
            if next(google(program, [(file, agent, [url])])) == ours(left, agent, [url]):
                return name
        file.write_bytes(text)
        plain = unquote(url)
        same = next(google(program, [(file, agent, [plain])])) == ours(text, agent, [plain])
        return "an escape and its character are one" if same else ""


def record(folder: str, program: str, to: str) -> int:
    """Write Google's answers for `gossamer`: per file its hash, the answers, and each difference with its cause."""
    texts = {path: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.is_file()}
    asked = [(path, "gossamer", addresses(text)) for path, text in texts.items()]
    lines = []
    for (path, agent, urls), theirs in zip(asked, google(program, asked), strict=True):
        text, mine = texts[path], ours(texts[path], agent, urls)
        causes = {n: cause(program, text, agent, urls[n]) for n in range(len(urls)) if mine[n] != theirs[n]}
        lines.append(json.dumps([key_of(text), theirs, causes]))
    Path(to).write_bytes(gzip.compress("\n".join(sorted(set(lines))).encode(), mtime=0))
    return 0


def key_of(text: bytes) -> str:
    """Return what a file is called in the record."""
    return hashlib.sha256(text).hexdigest()[:16]


def main(folder: str, program: str, *agents: str) -> int:
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    texts = {path: path.read_bytes() for path in files}
    unexplained: list[str] = []
    for agent in agents or ("gossamer",):
        asked = [(path, agent, addresses(texts[path])) for path in files]
        total, roots, causes, closed = 0, 0, Counter[str](), Counter[str]()
        differing: set[Path] = set()
        agreement: Counter[str] = Counter()
        for (path, _, urls), theirs in zip(asked, google(program, asked), strict=True):
            mine, total = ours(texts[path], agent, urls), total + len(urls)
            roots += mine[0] != theirs[0]
            for url, we, they in zip(urls, mine, theirs, strict=True):
                if we != they:
                    why = cause(program, texts[path], agent, url)
                    causes[why or "unexplained"] += 1
                    closed["closed by us, open for Google" if we == "0" else "open for us, closed by Google"] += 1
                    differing.add(path)
                    if not why:
                        unexplained.append(f"{path} {url}")
            agreement["Gossamer"] += sum(we == they for we, they in zip(mine, theirs, strict=True))
            if agent == "gossamer":
                for name, answers in others(texts[path], agent, urls).items():
                    agreement[name] += sum(we == they for we, they in zip(answers, theirs, strict=True))
        print(f"{agent}: {len(files):,} files, {total:,} answers")
        print(f"  different: {causes.total():,} answers in {len(differing)} files")
        print(f"  roots that differ: {roots}")
        print(f"  unexplained: {causes['unexplained']}; agreement but for the causes below: "
              f"{100 * (1 - causes['unexplained'] / total):.3f} %")  # fmt: skip
        for counts in (causes, closed):
            for name, count in counts.most_common():
                print(f"    {count:>7,}  {name}")
        for name, count in agreement.most_common():
            print(f"  agreement with Google's parser: {100 * count / total:7.3f} %  {name}")
    print("\n".join(unexplained[:20]))
    return 1 if unexplained else 0


if __name__ == "__main__":
    is_record = sys.argv[3:4] == ["--record"]
    sys.exit(record(*sys.argv[1:3], sys.argv[4]) if is_record else main(*sys.argv[1:]))
