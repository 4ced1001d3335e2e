"""Bad input: what a user gets wrong is one line that says what and how to mend it, status 2, and leaves no trace."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import gossamer
from gossamer.cli.checking import check_request
from gossamer.cli.job import CrawlRequest
from gossamer.cli.main import status_of_command
from gossamer.cli.output import Exit
from gossamer.config import Config, effective_toml
from tests.cli.answers import ANSWERS, HABITS, MORE
from tests.cli.conftest import Gossamer

Mistake = Callable[[list[str]], str]
SEED = "http://127.0.0.1:9/"
LOCAL = ("crawl", SEED, "--allow-private")
FILES = {
    "key.toml": b"[limits]\nmax_page = 3\n",
    "section.toml": b"[limit]\nmax_pages = 3\n",
    "outside.toml": b"max_pages = 3\n",
    "type.toml": b'[limits]\nmax_pages = "three"\n',
    "proxy.toml": b'[request."a.test"]\nproxy = "ftp://proxy:21"\n',
    "requests.toml": b'[request."a.test"]\ncertificate = "missing.pem"\n',
    "open.toml": b"[fetch]\nproxy = 'http//user:secret@proxy:1'\n",
    "bundle.toml": b"[fetch]\nca_bundle = 'hosts'\n",
    "modules.toml": b'[process]\nmodules = ["linsk"]\n',
    "policy.toml": b'[revisit]\npolicy = "never"\n',
    "parts.toml": b'[components]\narchives = ["nowhere:X"]\n',
    "filters.toml": b'[components]\nfilters = ["nowhere:X"]\n',
    "broken.toml": b"[limits\n",
    "bare.toml": b"[scope]\nscope = host # here\n",
    "list.toml": b"[seeds]\nurls = [http://127.0.0.1/]\n",
    "truth.toml": b"[robots]\nobey = No\n",
    "unit.toml": b"[limits]\nmax_time_s = 1h\n",
    "yaml.toml": b"[operator]\ncontact: me@example.org\n",
    "password.toml": b"[login.a.fields]\npassword = hunter2\n",
    "browsertrix.yaml": b"seeds:\n  - url: https://a.test/\n",
    "one.toml": b'[seeds]\nurls = "one"\n',
    "latin.toml": b"[operator]\nagent = '\xe9'\n",
    "seeds.txt": b"http://127.0.0.1/\nnot a url\n",
    "empty.txt": b"# nothing yet\n",
    "long.toml": b"[limits]\nmax_pages = " + b"9" * 5_000 + b"\n",
    "zero.toml": b'[seeds]\nfile = "a\\u0000b"\n',
    "latin.txt": b"http://127.0.0.1/\xe9\n",
    "hosts": b"127.0.0.1 ok.example\nnonsense\n",
    "file": b"",
    "crawled/crawl.toml": effective_toml(Config()).encode(),
    "folder/something": b"",
    "home/photos/one": b"",
}
CRAWLS = [
    # Words.
    (["frobnicate"], "no command 'frobnicate'; gossamer --help lists them"),
    ([SEED], f"{SEED} is no command; gossamer crawl {SEED} crawls it"),
    (["example.org/a", "--depth", "2"], "gossamer crawl https://example.org/a crawls it"),
    (["crawl.toml"], "no command 'crawl.toml'"),
    (["crwal", SEED], "did you mean crawl?"),
    ([*LOCAL, "--max-pagse", "3"], "did you mean --max-pages?"),
    ([*LOCAL, "--frobnicate"], "no option --frobnicate for gossamer crawl; gossamer crawl --help lists them"),
    ([*LOCAL, "--json", "--quiet"], "--json and --quiet exclude each other"),
    # Keys.
    ([*LOCAL, "-c", "key.toml"], "key.toml line 2: no key limits.max_page; did you mean limits.max_pages?"),
    ([*LOCAL, "-c", "section.toml"], "section.toml line 1: no section [limit]; did you mean limits?"),
    ([*LOCAL, "-c", "outside.toml"], "max_pages is outside its section; did you mean limits.max_pages?"),
    ([*LOCAL, "--set", "limits.max_page=3"], "--set: no key limits.max_page; did you mean limits.max_pages?"),
    ([*LOCAL, "--set", "max_pages=3"], "write --set section.key=value; the key is limits.max_pages"),
    ([*LOCAL, "--set", "delay=3"], "write --set section.key=value; the key is politeness.delay_s_min"),
    ([*LOCAL, "--set", "frobnicate"], "write --set section.key=value"),
    ([*LOCAL, "--cluster", "nonsense"], '--cluster "nonsense": expected HOST:PORT of the head of a Ray cluster'),
    ([*LOCAL, "--cluster", "ray://10.0.0.1:1"], '--cluster "ray://10.0.0.1:1": expected HOST:PORT of the head of a'),
    # Files.
    ([*LOCAL, "-c", "broken.toml"], "broken.toml is not TOML"),
    ([*LOCAL, "-c", "browsertrix.yaml"], "is not TOML, as configurations are; gossamer init writes an example\n"),
    ([*LOCAL, "-c", "bare.toml"], 'bare.toml is not TOML: invalid value (at line 2, column 9); write scope = "host"\n'),
    ([*LOCAL, "-c", "list.toml"], '; write urls = ["http://127.0.0.1/"]\n'),
    ([*LOCAL, "-c", "truth.toml"], "; write obey = false\n"),
    ([*LOCAL, "-c", "unit.toml"], '; write max_time_s = "1h"\n'),
    ([*LOCAL, "-c", "yaml.toml"], '; write contact = "me@example.org"\n'),
    ([*LOCAL, "-c", "password.toml"], '; write password = "…"\n'),
    (
        [*LOCAL, "-c", "one.toml"],
        'one.toml line 2: seeds.urls is "one", expected a list, such as ["a", "b"]; write ["one"]\n',
    ),
    ([*LOCAL, "-c", "latin.toml"], "latin.toml is not UTF-8 (byte 20); save it as UTF-8"),
    ([*LOCAL, "-c", "long.toml"], "long.toml is not TOML: exceeds the limit (4300 digits)"),
    ([*LOCAL, "--set", "limits.max_pages=" + "9" * 5_000], "expected a whole number"),
    ([*LOCAL, "--max-pages", "9223372036854775808"], "expected 9223372036854775807 or less"),
    ([*LOCAL, "-c", "zero.toml"], "zero.toml line 2: seeds.file holds a zero byte; remove it"),
    ([*LOCAL, "--set", 'output.directory="\\u0000"'], "--set: output.directory holds a zero byte"),
    ([*LOCAL, "-c", "missing.toml"], "cannot read missing.toml: No such file or directory"),
    ([*LOCAL, "-c", "folder"], "cannot read folder: Is a directory"),
    ([*LOCAL, "--hosts", "missing"], "/missing: No such file or directory; name a file that you can read"),
    ([*LOCAL, "--hosts", "hosts"], "hosts:2: 'nonsense' is no address; expected ADDRESS NAME"),
    ([*LOCAL, "--set", "fetch.ca_bundle=missing.pem"], "missing.pem; name a PEM file of certificates"),
    ([*LOCAL, "--set", "fetch.ca_bundle=hosts"], "hosts holds no certificate in PEM; name a file"),
    ([*LOCAL, "--set", 'process.modules=["nowhere:X"]'], "process.modules: cannot import 'nowhere:X'"),
    # Values.
    ([*LOCAL, "-c", "type.toml"], 'type.toml line 2: limits.max_pages is "three", expected a whole number'),
    ([*LOCAL, "--max-pages", "three"], '--max-pages "three": expected a whole number'),
    ([*LOCAL, "--set", "limits.max_pages=three"], '--set: limits.max_pages is "three", expected a whole number'),
    ([*LOCAL, "--max-time", "5MB"], '--max-time "5MB": expected a number of seconds, or a time with its unit'),
    ([*LOCAL, "--max-time", "1M"], '--max-time "1M": expected a number of seconds, or a time with its unit'),
    ([*LOCAL, "--max-bytes", "1h"], '--max-bytes "1h": expected a whole number of bytes, or one with its unit'),
    ([*LOCAL, "--max-pages", "5MB"], '--max-pages "5MB": expected a whole number'),
    ([*LOCAL, "--memory", "512"], "memory.budget_bytes = 512 is a number of bytes; did you mean 512MiB?"),
    ([*LOCAL, "--max-pages", "0"], "--max-pages 0: expected 1 or more"),
    ([*LOCAL, "--max-time", "0"], "--max-time 0.0: expected more than 0"),
    ([*LOCAL, "--delay", "-1"], "--delay -1.0: expected 0 or more"),
    ([*LOCAL, "--delay", "1e18"], "--delay 1e+18: expected 31536000 or less"),
    (
        [*LOCAL, "--set", "politeness.site_delay_s=1e300"],
        "politeness.site_delay_s is 1e+300, expected 31536000 or less",
    ),
    ([*LOCAL, "--set", "fetch.tls_min=0.9"], '--set: fetch.tls_min is "0.9", expected'),
    ([*LOCAL, "--delay", "nan"], "--delay NaN: expected"),
    ([*LOCAL, "--delay", "inf"], "--delay Infinity: expected a finite number"),
    ([*LOCAL, "--scope", "subdomain"], "'domain' or 'any'; did you mean 'domain'?"),
    ([*LOCAL, "--scope", "subdomains"], "; did you mean 'domain'?"),
    ([*LOCAL, "--politeness", "Gentle"], "; did you mean 'gentle'?"),
    ([*LOCAL, "--politeness", "rude"], "expected 'polite', 'gentle', 'broad', 'weak' or 'own'"),
    ([*LOCAL, "--scope", "hosts"], "expected 'prefix', 'host', 'domain' or 'any'"),
    ([*LOCAL, "--include", "("], "--include: the pattern '(' is not a regular expression (RE2): missing )"),
    ([*LOCAL, "--log-format", "xml"], '--log-format "xml": '),
    ([*LOCAL, "--exclude", ""], "--exclude: an empty pattern is found in every URL"),
    ([*LOCAL, "--dns", "nonsense"], "--dns: 'nonsense' is no name server; expected an address like 9.9.9.9"),
    ([*LOCAL, "--dns", "127.0.0.1:99999"], "a port from 1 to 65535"),
    ([*LOCAL, "--contact", "nonsense"], '--contact "nonsense": expected a mail address or a URL'),
    ([*LOCAL, "--set", "resolve.ttl_s_min=90000"], "--set: resolve: ttl_s_min 90000 is above ttl_s_max 86400"),
    (
        [*LOCAL, "--set", "fetch.proxy=http//user:secret@proxy:3128"],
        "fetch.proxy is not the URL of a proxy; write http:",
    ),
    ([*LOCAL, "--set", "fetch.proxy=proxy:99999"], "fetch.proxy is not the URL of a proxy"),
    ([*LOCAL, "--set", "fetch.proxy=socks4://proxy:1080"], "fetch.proxy is not the URL of a proxy; write http://HOST"),
    ([*LOCAL, "--set", "fetch.proxy=u:p@proxy:1"], "with a password http://USER:PASSWORD@HOST:PORT, its special"),
    ([*LOCAL, "-c", "proxy.toml"], 'request."a.test": proxy is not the URL of a proxy'),
    # Where it goes.
    ([*LOCAL, "-o", "file"], "cannot write to file: File exists; name another with -o DIR"),
    ([*LOCAL, "-o", "file/crawl"], "cannot write to file/crawl: Not a directory; name another with -o DIR"),
    ([*LOCAL, "-o", "crawled"], "gossamer resume crawled continues it, -o DIR starts another"),
    ([*LOCAL, "-o", "home"], "home holds other directories (photos); name another with -o DIR"),
    ([*LOCAL, "-o", "/"], "/ holds other directories ("),
    ([*LOCAL, "-o", ""], '--output "": expected a text that is not empty'),
    # Seeds.
    (["crawl"], "no seeds; name a URL (gossamer crawl https://example.org/) or a file of them"),
    (["crawl", ""], "an empty seed: give an address such as https://example.org/"),
    (["crawl", "seeds.txt"], "'seeds.txt' is a file, not a URL; if it lists seeds, write --seeds seeds.txt"),
    (["crawl", "example.org"], "the seed 'example.org' has no scheme; did you mean https://example.org/ ?"),
    (["crawl", "mailto:me@example.org"], "has the scheme 'mailto'; those visited are http, https"),
    (["crawl", "http://127.0.0.1:99999/"], "its host or port is not valid; check it for misprints"),
    (["crawl", "--seeds", "missing.txt"], "missing.txt: No such file or directory; name a file that you can read"),
    (["crawl", "--seeds", "folder"], "folder: Is a directory; name a file that you can read"),
    (["crawl", "--seeds", "seeds.txt", "--allow-private"], "seeds.txt line 2: the seed 'not a url' has no scheme"),
    (["crawl", "--seeds", "latin.txt", "--allow-private"], "latin.txt is not UTF-8 (byte 17); save it as UTF-8"),
    (["crawl", "--seeds", "empty.txt"], "no seeds; name a URL"),
    (["crawl", "https://example.org/"], "add --contact with a URL or mail address of yours"),
    (["crawl", SEED], "is at a private address; add --allow-private to visit those"),
    ([*LOCAL, "--contact", "me\udcff@example.org"], "--contact holds what is no text in UTF-8; write it in UTF-8"),
    (["crawl", "http://127.0.0.1/\udcff", "--allow-private"], "seeds.urls holds what is no text in UTF-8"),
    (["crawl", "http://[::1]/"], "is at a private address; add --allow-private to visit those"),
]
OTHERS = [
    (
        ["--scope", "subdomain"],
        "no option --scope for gossamer; it follows a command: gossamer crawl SEED --scope SCOPE",
    ),
    (["-o", "here"], "; it follows a command: gossamer crawl SEED -o DIR"),
    (["resume", "missing"], "no directory missing; name the one that gossamer crawl -o made"),
    (["resume", "folder"], "folder holds no crawl"),
    (["resume", "file"], "file holds no crawl"),
    (["resume", "crawled", "--max-pages", "-3"], "--max-pages -3: expected 1 or more"),
    (["resume", "crawled", "--scope", "any"], "no option --scope for gossamer resume; use --set 'scope.scope=SCOPE'"),
    (
        ["resume", "crawled", "--exclude", "x"],
        """no option --exclude for gossamer resume; use --set 'scope.exclude=["RE"]';""",
    ),
    (
        ["resume", "crawled", "-c", "x"],
        "no option -c for gossamer resume; the crawl has its configuration in DIR/crawl.toml",
    ),
    (["resume", "crawled", "--set", "output.directory=other"], "output.directory: a crawl stays where it is; stop it"),
    (["set", "crawled", "output.directory=other"], "output.directory: a crawl stays where it is; stop it"),
    (["host", "crawled", "a.test", "delay_s=-3"], "host.a.test.delay_s is -3, expected 0 or more"),
    (["host", "crawled", "a.test", "delay=3"], "no key host.a.test.delay; did you mean delay_s?"),
    (["host", "crawled", "a.test", "delay_s=none"], "no crawl runs in crawled; gossamer resume crawled --set"),
    (["status", "folder"], "folder holds no crawl"),
    (["report", "missing"], "no directory missing"),
    (["why", "folder", SEED], "folder holds no crawl"),
    (["seed", "folder", SEED], "folder holds no crawl"),
    (["stop", "missing"], "no directory missing"),
    (["set", "crawled", ""], "set: assignments.0: expected a text that is not empty"),
    (["set", "crawled", "limits.max_page=3"], "no key limits.max_page; did you mean limits.max_pages?"),
    (["set", "crawled", "max_pages"], "max_pages: write section.key=value; the key is limits.max_pages"),
    (["set", "crawled", "fetch.proxy=http://u:p@a/"], "gossamer resume crawled --set fetch.proxy=… continues it so"),
    (["set", "crawled"], "no crawl runs in crawled; gossamer resume crawled continues it\n"),
    (["resume", "crawled", "--set", ""], "--set: write --set section.key=value"),
    (["exclude", "crawled", ""], "exclude: hosts.0: expected a text that is not empty"),
    (["scale", "crawled", "--workers", "0"], "scale: workers: expected 1 or more"),
    (["search", "crawled", "crawler", "-java"], "before words to leave out write --: gossamer search DIR -- WORD -W"),
    (["seed"], "missing argument 'DIR'; write gossamer seed DIR URL"),
    (["status", "x" * 5_000], f"{'x' * 200}…: File name too long; name a shorter one"),
    ([*LOCAL, SEED, "-o", "x" * 300], f"{'x' * 200}…: File name too long; name a shorter one"),
    (["report", "x", "--html"], "option '--html' requires an argument; gossamer report --help says more"),
    (["--version=3"], "option '--version' does not take a value; gossamer --help says more"),
    (["config"], "missing command; gossamer config --help says more"),
    (["config", "check", "key.toml"], "key.toml line 2: no key limits.max_page"),
    (["config", "check", "proxy.toml"], 'request."a.test": proxy is not the URL of a proxy'),
    (["config", "check", "open.toml"], "fetch.proxy is not the URL of a proxy; write http:"),
    (["config", "check", "bundle.toml"], "hosts holds no certificate in PEM"),
    (["config", "check", "requests.toml"], "missing.pem: No such file or directory"),
    (["config", "check", "modules.toml"], "process.modules: no module 'linsk'; did you mean links?"),
    (["config", "check", "policy.toml"], "revisit.policy: no policy 'never'; write uniform,"),
    (["config", "check", "parts.toml"], "components.archives: cannot import 'nowhere:X'"),
    (["config", "check", "filters.toml"], "components.filters: cannot import 'nowhere:X'"),
    (["config", "show", "folder"], "folder holds no crawl"),
    (["init", "file"], "file exists; name another file, or remove it first"),
    (["init", "missing/gossamer.toml"], "cannot write missing/gossamer.toml"),
    (["demo", "-o", "file"], "file is a file; name a directory with -o DIR"),
    (["demo", "-o", "folder"], "folder holds something else; name another with -o DIR"),
    (["demo", "--size", "huge"], "--size huge: expected small, medium or large"),
    (["simweb", "--size", "huge"], "--size huge: expected small, medium or large"),
    (["search", "crawled", "words", "--limit", "ten"], "--limit ten: expected a whole number"),
    (["rank", "crawled", "--damping", "half"], "--damping half: expected a number"),
    (["simweb", "--port", "99999"], "--port 99999: expected 65535 or less"),
]


@pytest.fixture
def mistake(real: Gossamer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Mistake:
    """The commands in this process, for speed; what they start is a process all the same."""
    monkeypatch.chdir(real.directory)

    def refused(arguments: list[str]) -> str:
        status = status_of_command(arguments)
        out, err = capfd.readouterr()
        assert (status, out) == (2, "")
        assert err.startswith("gossamer: ")
        assert err.count("\n") == 1
        return err

    return refused


@pytest.fixture
def real(run: Gossamer) -> Gossamer:
    """The commands with everything that is behind them, among files that are not what they should be."""
    run.environment["PYTHONPATH"] = str(Path(gossamer.__file__).parent.parent)
    for name, content in FILES.items():
        (run.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (run.directory / name).write_bytes(content)
    return run


def there(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None for path in directory.rglob("*")
    }


@pytest.mark.parametrize(("arguments", "said"), [*CRAWLS, *OTHERS])
def test_a_mistake_is_one_line_and_leaves_nothing(
    mistake: Mistake, tmp_path: Path, arguments: list[str], said: str
) -> None:
    before = there(tmp_path)
    assert said in mistake(arguments)
    assert there(tmp_path) == before


VALUES = {
    ("scope.scope", "all"): "did you mean 'any'?", ("scope.scope", "Whole_Site"): "'host' is one server name",
    ("politeness.preset", "fast"): "'own' is for your own servers", ("crawl.render", "yes"): "did you mean 'always'?",
    ("crawl.mode", "once"): "did you mean 'batch'?", ("scope.depth_max", "inf"): "write none for no limit",
    ("scope.depth_max", "-1"): "write none for no limit", ("logs.level", "WARN"): "did you mean 'warning'?",
    ("fetch.tls_min", "TLSv1.2"): "did you mean '1.2'?", ("politeness.per_host", "max"): "write a number such as 4",
    ("limits.max_pages", "Infinity"): "write none for no limit", ("cluster.workers", "cpus"): "write auto",
}  # fmt: skip
"""Values that people write by habit, and what must be in the answer."""


@pytest.mark.parametrize(("key", "value"), VALUES)
def test_a_value_of_another_program_is_answered_with_ours(mistake: Mistake, key: str, value: str) -> None:
    said = mistake([*LOCAL, "--set", f"{key}={value}"])
    assert said.count("\n") == 1
    assert said.count("did you mean") <= 1
    assert VALUES[key, value] in said


@pytest.mark.parametrize(("arguments", "answer"), ANSWERS)
def test_the_whole_answer_to_a_wrong_word(mistake: Mistake, tmp_path: Path, arguments: list[str], answer: str) -> None:
    for name, content in MORE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    before = there(tmp_path)
    assert mistake(arguments) == f"gossamer: {answer.replace('HERE', str(tmp_path))}\n"
    after = {name: data for name, data in there(tmp_path).items() if not name.startswith("crawled/state")}
    assert after == before, "what opens a crawl locks it there, and leaves nothing else"


@pytest.mark.parametrize("command", HABITS, ids="-".join)
def test_an_option_of_another_program_is_answered_with_what_to_type(mistake: Mistake, command: tuple[str, ...]) -> None:
    for option, answer in HABITS[command].items():
        said = mistake([*command, option])
        assert said.startswith(f"gossamer: no option {option} for gossamer {command[0]}")
        assert answer in said, option


def test_variables_of_the_environment_that_set_nothing_are_named_with_their_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("MAX_PAGES", "LIMITS__MAX_BYTES", "USER_AGENT", "BUILD_ID"):
        monkeypatch.setenv(f"GOSSAMER_{name}", "3")
    monkeypatch.chdir(tmp_path)

    def check(request: CrawlRequest) -> int:
        check_request(request, lambda _: None)
        return 0

    named = "fetch.headers={X-Agent = 'env:GOSSAMER_USER_AGENT'}"
    assert status_of_command([*LOCAL, "--set", named], check) == 0
    said = "gossamer: the variable GOSSAMER_{} of the environment sets nothing; use {}\n"
    assert capsys.readouterr().err == said.format("LIMITS__MAX_BYTES", "--set limits.max_bytes=VALUE") + said.format(
        "MAX_PAGES", "--max-pages N"
    )


def test_a_password_in_a_seed_is_dropped_with_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    def check(request: CrawlRequest) -> int:
        _, config = check_request(request, lambda _: None)
        assert "swordfish" not in effective_toml(config)
        return 0

    assert status_of_command(["crawl", "http://ann:swordfish@127.0.0.1:9/a", "--allow-private"], check) == 0
    said = capsys.readouterr().err
    rule = said.partition("--set '")[2].partition("'")[0]
    assert said.startswith("gossamer: http://127.0.0.1:9/a: its user name and password are not sent;")
    assert "swordfish" not in said
    assert status_of_command([*LOCAL, "--set", rule], check) == 0, "what it advises is taken"
    assert capsys.readouterr().err == ""


def test_all_wrong_keys_are_named_each_on_a_line(real: Gossamer) -> None:
    wrong = ["--set", "limits.max_page=3", "--set", "limits.max_tim_s=x", "--set", "max_pages=3"]
    status, out, err = real(*LOCAL, "-c", "section.toml", *wrong)
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        "gossamer: --set max_pages: write --set section.key=value; the key is limits.max_pages",
        "gossamer: section.toml line 1: no section [limit]; did you mean limits?",
        "gossamer: --set: no key limits.max_page; did you mean limits.max_pages?",
        "gossamer: --set: no key limits.max_tim_s; did you mean limits.max_time_s?",
    ]


@pytest.mark.parametrize("directory", ["crawl", "deep/er"])
def test_no_seeds_on_standard_input_leave_nothing(real: Gossamer, directory: str) -> None:
    before = there(real.directory)
    assert "no seeds; name a URL" in real.mistake("crawl", "--seeds", "-", "-o", directory)
    assert there(real.directory) == before


def test_hosts_that_can_be_read_but_once_are_refused(real: Gossamer) -> None:
    os.mkfifo(real.directory / "pipe")
    assert "pipe is a pipe, and hosts are read more than once" in real.mistake(*LOCAL, "--hosts", "pipe")


def test_what_was_there_before_a_refused_crawl_stays(real: Gossamer) -> None:
    for name in ("web", "lost+found", ".snapshot"):  # Of another command, and of a volume.
        (real.directory / "volume" / name).mkdir(parents=True)
    (real.directory / "volume" / "output.log").touch()
    before = there(real.directory)
    assert "no address" in real.mistake(*LOCAL, "--hosts", "hosts", "-o", "volume")
    assert there(real.directory) == before


def test_a_right_crawl_after_a_refused_one_takes_the_same_directory(real: Gossamer) -> None:
    real.mistake(*LOCAL, "--hosts", "hosts")
    status, _, err = real(*LOCAL, "--max-time", "0.5")
    assert (status, err.count("the seed could not be fetched")) == (Exit.NOTHING, 1), "no server listens there"
    assert (real.directory / "crawl/crawl.toml").exists()
