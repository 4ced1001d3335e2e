"""The crawlers of the league table: how each is started, how it goes on after a kill, and what it keeps.

Each runs as its manual says, with robots.txt obeyed and the same number of requests at once where it has such a number.
`make league` installs them below `.parts/league`; one that is not there is named in the report.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fastwarc.warc import ArchiveIterator, WarcRecordType

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks/peers"
INSTALLED = ROOT / ".parts/league"
PYTHON = INSTALLED / "python/bin/python"
PER_HOST = 8
"""Requests at once to one host, of those that count by host: what `--politeness own` sends."""
UNREACHED = {
    "Colly": "Go; in neither Debian, PyPI nor npm, and the Go module proxy could not be reached",
    "Heritrix": "Java; in neither Debian, PyPI nor npm, and Maven Central could not be reached",
}


@dataclass(frozen=True)
class Task:
    """One crawl that every peer can carry out."""

    seeds: tuple[str, ...]
    domains: tuple[str, ...]
    """Hosts, or their last labels, within which links are followed."""
    hosts_file: Path
    hosts: int
    delay_s: float = 0.0
    """Between requests to one host; 0 is impolite."""
    resumable: bool = False
    """Keep what a restart needs, where that costs an option."""


Kept = Callable[[Path], Counter[str]]
"""Returns how often each URL is among what a crawl kept."""


@dataclass(frozen=True)
class Peer:
    """One crawler."""

    name: str
    stores: str
    command: Callable[[Task, Path, bool], list[str]]
    """Of a task, the output directory, and whether it continues there."""
    needs: Path | str
    """A file or a program without which it is not installed."""
    kept: Kept | None = None
    resume: str = ""
    """What continues after a kill; empty: nothing does."""
    polite: bool = True
    """Whether it runs with a delay: what is tuned for speed does not."""
    failures: frozenset[int] = frozenset({0})
    """Exit statuses of a crawl that came to its end."""

    def absent(self) -> bool:
        """Say whether it is not installed."""
        return shutil.which(self.needs) is None if isinstance(self.needs, str) else not self.needs.exists()


def warc(directory: Path) -> Counter[str]:
    """Count the HTML pages of WARC files, copies recorded as `revisit` too."""
    urls: Counter[str] = Counter()
    for path in sorted(directory.rglob("*.warc.gz*")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, record_types=WarcRecordType.response | WarcRecordType.revisit):
                http = record.http_headers
                if http and http.status_code == 200 and "text/html" in (record.http_content_type or ""):
                    urls[record.headers["WARC-Target-URI"].strip("<>")] += 1
    return urls


def rows(directory: Path) -> Counter[str]:
    """Count the URLs of JSON lines and of datasets with one file for each row; a line cut by a kill is none."""
    urls: Counter[str] = Counter()
    for line in _lines(directory):
        try:
            urls[json.loads(line)["url"]] += 1
        except (ValueError, KeyError):
            continue
    return urls


def _lines(directory: Path) -> Iterator[str]:
    for path in directory.rglob("*.jsonl"):
        yield from path.read_text(errors="replace").splitlines()
    for path in directory.rglob("datasets/default/[0-9]*.json"):
        yield path.read_text(errors="replace")


def files(directory: Path, root: Path) -> Counter[str]:
    """Count saved files that equal those below `root`; one cut short by a kill is none."""
    urls: Counter[str] = Counter()
    for path in directory.glob("*/**/*"):
        host, *names = path.relative_to(directory).parts
        source = root.joinpath(*names)
        if path.is_file() and source.is_file() and source.read_bytes() == path.read_bytes():
            urls[f"http://{host}/{'/'.join(names)}"] += 1
    return urls


def _gossamer(task: Task, out: Path, _: bool) -> list[str]:
    politeness = ["--delay", str(task.delay_s), "--per-host", "1"] if task.delay_s else []
    scope = [f"--include=^http://([^/]*[.])?({'|'.join(task.domains)})[:/]"]
    return [
        sys.executable, "-m", "gossamer", "crawl", *task.seeds, "-o", str(out), "--or-resume", "--quiet", "--scope",
        "any", *scope, "--allow-private", "--hosts", str(task.hosts_file), "--politeness", "own", *politeness,
    ]  # fmt: skip


def _lean(task: Task, out: Path, resumed: bool) -> list[str]:
    without = ["--set", "archive.links=false", "--set", "archive.warc_request_records=false"]
    return [*_gossamer(task, out, resumed), *without]


def _script(program: Path | str, script: str, mode: str) -> Callable[[Task, Path, bool], list[str]]:
    def command(task: Task, out: Path, resumed: bool) -> list[str]:
        values = {
            "mode": mode, "seeds": task.seeds, "domains": task.domains, "delay_s": task.delay_s, "output": str(out),
            "per_host": 1 if task.delay_s else PER_HOST, "concurrency": PER_HOST * task.hosts,
            "resumable": task.resumable, "resumed": resumed,
        }  # fmt: skip
        return [str(program), str(SCRIPTS / script), json.dumps(values)]

    return command


def _wget(task: Task, out: Path, *options: str, program: str = "wget") -> list[str]:
    wait = ["-w", str(task.delay_s)] if task.delay_s else []
    span = ["-H", "-D", ",".join(task.domains)] if task.hosts > 1 else []
    return [program, "-q", "-r", "-l", "inf", "--tries=3", "-P", str(out), *span, *wait, *options, *task.seeds]


def _wget_files(task: Task, out: Path, resumed: bool) -> list[str]:
    return _wget(task, out, *(["-nc"] if resumed else []))


def _wget_warc(task: Task, out: Path, _: bool) -> list[str]:
    return _wget(task, out, "--delete-after", f"--warc-file={out}/wget")


def _wget2(task: Task, out: Path, resumed: bool) -> list[str]:
    threads = f"--max-threads={1 if task.delay_s else PER_HOST}"
    return _wget(task, out, threads, *(["-nc"] if resumed else []), program="wget2")


def peers(root: Path) -> list[Peer]:
    """Return all; `root` is what the server serves, to compare saved files with."""
    saved, nothing = (lambda directory: files(directory, root)), "nothing"
    resume = "the same command with --or-resume"
    crawlee, cheerio = INSTALLED / "python/bin/crawlee", INSTALLED / "node/node_modules/@crawlee/cheerio/package.json"
    scrapy, wget_errors = INSTALLED / "python/bin/scrapy", frozenset({0, 4, 6, 8})
    return [
        Peer("Gossamer", "WARC, pages and links as Parquet, text, index, queues", _gossamer, Path(sys.executable),
             warc, resume, failures=frozenset({0, 4})),
        Peer("Gossamer, lean", "as above without links and request records", _lean, Path(sys.executable),
             warc, resume, polite=False, failures=frozenset({0, 4})),
        Peer("Scrapy", "rows: URL and title", _script(PYTHON, "scrapy_spider.py", "shipped"), scrapy, rows, "JOBDIR"),
        Peer("Scrapy at its fastest", nothing, _script(PYTHON, "scrapy_spider.py", "fastest"), scrapy, polite=False),
        Peer("crawlee (Python)", "rows: URL and title; queue as files",
             _script(PYTHON, "crawlee_crawler.py", "shipped"), crawlee, rows, "purge_on_start=False"),
        Peer("crawlee at its fastest", nothing, _script(PYTHON, "crawlee_crawler.py", "fastest"), crawlee,
             polite=False),
        Peer("crawlee (Node)", "rows: URL and title; queue as files", _script("node", "crawlee_crawler.mjs", "shipped"),
             cheerio, rows, "purgeOnStart: false"),
        Peer("wget", "files", _wget_files, "wget", saved, "-nc", failures=wget_errors),
        Peer("wget --warc-file", "WARC", _wget_warc, "wget", warc, failures=wget_errors, polite=False),
        Peer("wget2", "files", _wget2, "wget2", saved, "-nc", failures=wget_errors),
    ]  # fmt: skip
