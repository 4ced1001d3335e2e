"""Config: what is wrong is said in one line, and every value knows where it came from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args, get_origin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.config import Config, configure, effective_toml, reopen
from gossamer.config import presets as crawl_presets
from gossamer.config.flags import BY_NAME, FLAGS, Flag
from gossamer.config.gather import mistakes
from gossamer.config.sections import key_of, keys, sections
from gossamer.config.toml import assignments, read_assignment, starter_toml, to_toml
from gossamer.model.errors import ConfigError
from gossamer.options import NamedSection, convert, keys_of, rule_type, to_table
from gossamer.stages.frontier.options import Preset, politeness
from gossamer.stages.scope.options import Mode
from tests.reference import PAGE, RULES, markdown

REPOSITORY = Path(__file__).parent.parent


LOGIN = """
[login.work]
url = "https://in.example.org/"
fields = {a = "b"}
check = {text = "Hello"}
"""


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "gossamer.toml"
    file.write_text(text, encoding="utf-8")
    return file


def complaint(file: Path | None = None, **arguments: object) -> str:
    with pytest.raises(ConfigError) as raised:
        configure(file, **arguments)  # type: ignore[arg-type]
    line = str(raised.value)
    assert "\n" not in line
    return line


@pytest.mark.promise(
    "Operation", "A configuration error is one line that names the place and the remedy, and starts nothing."
)
@pytest.mark.parametrize(
    ("text", "line", "says", "mends"),
    [
        ("[limits]\nmax_page = 3\n", 2, "no key limits.max_page", "did you mean limits.max_pages?"),
        ("\n[limit]\nmax_pages = 3", 2, "no section [limit]", "did you mean limits?"),
        ("# x\nmax_pages = 3", 2, "outside its section", "did you mean limits.max_pages?"),
        ("[limits]\nconcurrency = 3", 2, "no key limits.concurrency", "did you mean crawl.concurrency?"),
        ("[limits]\nqqq = 3", 2, "no key limits.qqq", "[limits] has max_pages"),
        ('[limits]\nmax_pages = "x"', 2, 'limits.max_pages is "x"', "a whole number"),
        ("[limits]\nmax_pages = true", 2, "limits.max_pages is true", "a whole number"),
        ("[limits]\nmax_pages = 1.5", 2, "limits.max_pages is 1.5", "a whole number"),
        ("[limits]\nmax_pages = 0", 2, "limits.max_pages is 0", "1 or more"),
        ("[progress]\ninterval_s = inf", 2, "progress.interval_s is Infinity", "a finite number"),
        ('[crawl]\ncommit_s = "a\\nb "', 2, 'crawl.commit_s is "a\\nb "', "expected a number of seconds"),
        ("limits = 3", 1, "limits is 3", "a section of keys"),
        ('[scope]\nexclude = "a"', 2, 'scope.exclude is "a"', 'a list, such as ["a", "b"]'),
        ('[politeness]\npreset = "polit"', 2, 'politeness.preset is "polit"', "'polite', 'gentle'"),
        ('[operator]\ncontact = "me"', 2, 'operator.contact is "me"', "a mail address or a URL"),
        ('[operator]\nagent = "a\\r\\nX: y"', 2, 'operator.agent is "a\\r\\nX: y"', "printable ASCII"),
        ('[scope]\ninclude = ["("]', 2, "scope.include", "("),
        ("[limits\nx", 1, "is not TOML", "expected"),
    ],
)
def test_a_mistake_in_the_file_names_line_and_remedy(
    tmp_path: Path, text: str, line: int, says: str, mends: str
) -> None:
    said = complaint(write(tmp_path, text))
    assert f"line {line}" in said
    assert "gossamer.toml" in said
    assert says in said
    assert mends in said


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "cannot read" in complaint(tmp_path / "absent.toml")
    (tmp_path / "latin.toml").write_bytes(b'[output]\ndirectory = "\xe9"')
    assert "not UTF-8" in complaint(tmp_path / "latin.toml")


def test_options_and_sets_name_themselves() -> None:
    assert complaint(options={"max_pages": -3}).startswith("--max-pages -3: expected")
    assert complaint(options={"scope": "hots"}).startswith('--scope "hots": expected')
    assert "did you mean max_pages?" in complaint(options={"max_page": 3})
    assert complaint(sets=["limits.max_pages=abc"]).startswith('--set: limits.max_pages is "abc"')
    assert "write --set section.key=value" in complaint(sets=["max_pages=3"])
    assert "did you mean limits.max_pages?" in complaint(sets=["limits.maxpages=3"])


@pytest.mark.parametrize(
    "key",
    [
        "crawl.commit_s", "search.commit_s", "state.checkpoint_s", "watch.look_s", "scope.exclude_hosts_reread_s",
        "progress.interval_s", "cluster.resend_s", "cluster.tenure_s", "cluster.address_term_s",
        "cluster.address_turn_s",
    ],
)  # fmt: skip
def test_an_interval_of_the_crawls_own_work_has_a_longest(key: str) -> None:
    assert "or less" in complaint(sets=[f"{key}=1e9"])


def test_what_no_crawl_could_work_with_is_refused() -> None:
    for age_s in ("0", "-3", "1e300"):
        assert "expected more than 0 and at most 1000000000" in complaint(sets=[f"revisit.max_age_s={{a={age_s}}}"])
    assert "0.01 or more" in complaint(sets=["process.module_s_max=1e-4"]), "its timer would be all that runs"
    assert "expected 0 or more" in complaint(sets=["revisit.importance={a=1, b=-1}"])
    assert configure(sets=["revisit.importance={a=0}"]).revisit.importance == {"a": 0.0}
    assert "RE2" in complaint(sets=["revisit.max_age_s={'('=3}"])


@pytest.mark.parametrize("key", ["fetch.request_s_max", "limits.max_time_s", "websub.lease_s", "budget.round_s"])
def test_no_key_in_seconds_takes_more_than_the_system_does(key: str) -> None:
    said = complaint(sets=[f"{key}=1{'0' * 15}"])
    assert "or less" in said
    assert configure(sets=["fetch.low_speed_bytes_s=10000000000"]).fetch.low_speed_bytes_s == 10**10, "a rate"


def test_a_set_takes_the_name_of_a_place_as_a_file_has_it() -> None:
    assert configure(sets=['host."a.test"={delay_s=2}']).host == configure(sets=["host.a.test={delay_s=2}"]).host
    said = complaint(sets=['request."https://a.test/x/".bearer=b5f3'])
    assert "--set 'request.https://a.test/x/={bearer = …}'" in said
    assert "b5f3" not in said


def test_a_mistake_inside_a_table_is_named_with_its_own_line(tmp_path: Path) -> None:
    text = """[extract.book]
urls = ["x"]
[extract.book.fields]
title = { css = "h1" }
price = { csss = "h1" }
[extract.book.fields.author]
css = "a"
requird = true
"""
    file = write(tmp_path, text)
    assert mistakes(file) == [
        f"{file} line 5: no key extract.book.fields.price.csss; did you mean css?",
        f"{file} line 8: no key extract.book.fields.author.requird; did you mean required?",
    ]
    other = complaint(file, sets=["extract.book={ fields = { price = { csss = 'h1' } } }"])
    assert other == "--set: no key extract.book.fields.price.csss; did you mean css?"
    book = write(tmp_path, "[extract.book.fields]\ntitle = { css = 'h1' }\n")
    assert [key for key in configure(book).origins if key.startswith("extract.")] == ["extract.book"]


def test_rules_within_a_table_are_read_and_unset(tmp_path: Path) -> None:
    file = write(tmp_path, f"{LOGIN}logout = ['/bye']\n[extract.book]\nfields = {{ title = 'h1' }}\n")
    config = configure(file)
    assert config.login.rules["work"].logout == ("/bye",)
    assert config.extract.rules["book"].fields["title"].css == "h1"
    config = configure(file, sets=["login.work=none", "extract.book=none"])
    assert (config.login.rules, config.extract.rules) == ({}, {})


def test_all_mistakes_of_a_file_are_found_at_once(tmp_path: Path) -> None:
    """Those of names and values within a table, and those of keys that do not go together, each with its line."""
    text = """[limits]
max_pages = 0
max_page = 3
[logs.levels]
fetch = "loud"
robot = "info"
[scope]
schemes = ["gopherr"]
[identity]
send_from = true
key_file = "key"
"""
    file = write(tmp_path, text)
    assert mistakes(file) == [
        f"{file} line 2: limits.max_pages is 0, expected 1 or more; leave it out for no limit",
        f"{file} line 3: no key limits.max_page; did you mean limits.max_pages?",
        (
            f'{file} line 5: logs.levels.fetch is "loud", '
            "expected 'debug', 'info', 'warning', 'error', 'critical' or 'off'"
        ),
        f"{file} line 6: logs.levels.robot: no package 'robot' writes to the log; did you mean robots?",
        f"{file} line 8: scope.schemes: no scheme is called 'gopherr'; did you mean gopher?",
        f"{file} line 11: identity: key_file needs directory, the https origin where verifiers find the public keys",
    ]


def test_later_sources_win_and_origins_tell(tmp_path: Path) -> None:
    file = write(tmp_path, '[limits]\nmax_pages = 1\nmax_time_s = 1\nmax_bytes = 1\n[scope]\nscope = "any"\n')
    config = configure(file, options={"max_time": 2, "max_bytes": 2, "quiet": False}, sets=["limits.max_bytes=3"])
    assert (config.limits.max_pages, config.limits.max_time_s, config.limits.max_bytes) == (1, 2, 3)
    assert config.origin("limits.max_pages") == f"{file} line 2"
    assert config.origin("limits.max_time_s") == "--max-time"
    assert config.origin("limits.max_bytes") == "--set"
    assert config.origin("scope.depth_max") == "default"
    assert config.origin("progress.style") == "default"


def test_sets_take_toml_bare_words_and_none() -> None:
    config = configure(
        options={"max_pages": 5},
        sets=["scope.scope=any", 'scope.include=["a", "b"]', "crawl.concurrency=7", "limits.max_pages=none"],
    )
    assert config.scope.scope == "any"
    assert config.scope.include == ("a", "b")
    assert config.crawl.concurrency == 7
    assert config.limits.max_pages is None


def test_paths_begin_where_they_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    file = write(tmp_path, '[resolve]\nhosts_file = "names"\n')
    assert configure(file).resolve.hosts_file == str(tmp_path / "names")
    assert configure(options={"hosts": "names"}).resolve.hosts_file == str(tmp_path / "here/names")
    assert configure(options={"seeds": "-"}).seeds.file == "-"


@pytest.mark.promise(
    "Operation", "An effective configuration that is written and read again is the same, origins included."
)
def test_the_effective_file_gives_the_same_configuration_and_origins(tmp_path: Path) -> None:
    config = configure(
        write(tmp_path, "[limits]\nmax_pages = 3\n"),
        options={"include": ["a\x7f\"#'  # from x", "é\n"], "quiet": True, "delay": 0.00001},
        sets=["crawl.concurrency=7"],
    )
    file = tmp_path / "crawl.toml"
    file.write_text(effective_toml(config), encoding="utf-8")
    again = reopen(file)
    assert again == config
    assert all(again.origin(key) == config.origin(key) for key in keys())
    assert effective_toml(again) == effective_toml(config)


def test_reopening_takes_changes_and_knows_them(tmp_path: Path) -> None:
    file = tmp_path / "crawl.toml"
    text = effective_toml(configure(options={"max_pages": 5}))
    file.write_text(text.replace("concurrency = 256", "concurrency = 9"), encoding="utf-8")
    config = reopen(file, options={"max_depth": 4})
    assert config.limits.max_pages == 5
    assert config.origin("limits.max_pages") == "--max-pages"
    assert config.origin("scope.depth_max") == "--max-depth"
    assert config.origin("crawl.concurrency").startswith(f"{file} line ")
    assert config.origin("scope.scope") == "default"


def test_reopening_accepts_keys_that_only_earlier_versions_had(tmp_path: Path) -> None:
    file = tmp_path / "crawl.toml"
    text = effective_toml(configure(options={"max_pages": 5}))
    file.write_text(text.replace("[cluster]\n", "[cluster]\nobject_store_bytes = 83886080\n"), encoding="utf-8")
    assert reopen(file).limits.max_pages == 5
    file.write_text(text.replace("[archive]\n", "[archive]\nwarc_bzip_level = 7\n"), encoding="utf-8")
    with pytest.raises(ConfigError, match="warc_bzip_level"):
        reopen(file)


WHOLE = effective_toml(configure(options={"max_pages": 5}))


@pytest.mark.parametrize(
    "text", ["", "\n \n", "# The configuration of this crawl\n", "\ufeff", "format = 1\n", "\0" * 4096, "[seeds]\n"]
)
def test_a_configuration_that_was_emptied_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "crawl.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"crawl\.toml (is empty|ends early|is not TOML)") as refused:
        reopen(tmp_path / "crawl.toml")
    assert len(refused.value.lines) == 1


def test_a_configuration_that_was_cut_at_any_line_is_refused(tmp_path: Path) -> None:
    lines = WHOLE.splitlines(keepends=True)
    for end in range(0, lines.index("[progress]\n"), 7):
        (tmp_path / "crawl.toml").write_text("".join(lines[:end]), encoding="utf-8")
        with pytest.raises(ConfigError, match=r"crawl\.toml (is empty|ends early)"):
            reopen(tmp_path / "crawl.toml")
    (tmp_path / "crawl.toml").write_text(WHOLE, encoding="utf-8")
    assert reopen(tmp_path / "crawl.toml").limits.max_pages == 5


@given(st.text() | st.integers() | st.booleans() | st.lists(st.text()) | st.floats(allow_nan=False))
def test_what_is_written_is_read(value: object) -> None:
    assert tomllib.loads(f"value = {to_toml(value)}")["value"] == value


OPERATORS_KEYS_MAX = 120


def test_the_starter_file_sets_nothing_and_explains_what_operators_set(tmp_path: Path) -> None:
    text = starter_toml()
    assert configure(write(tmp_path, text)) == Config()
    uncommented = [line.removeprefix("# ") for line in text.splitlines() if " = " in line or line.startswith("[")]
    assert to_table(configure(write(tmp_path, "\n".join(uncommented)))) == {}
    explained = {key for key, _, _ in assignments(text.replace("# ", ""))} & set(keys())
    basic = {
        f"{name}.{key}"
        for name, model in sections().items()
        for key, field in keys_of(model).items()
        if field.key.basic
    }
    assert explained == basic
    rules = [model for name, model in sections().items() if name in RULES and issubclass(model, NamedSection)]
    values = [key for model in rules for key, field in keys_of(rule_type(model)).items() if field.key.basic]
    assert len(basic) + len(values) <= OPERATORS_KEYS_MAX
    # Options and live controls that a user meets are no experts' keys.
    assert {"crawl.concurrency", "politeness.delay_s_min", "scope.exclude", "limits.max_pages"} <= basic
    page = Path("docs/reference/configuration.md").read_text()
    assert all(f"`{key.partition('.')[2]}`" in page for key in keys())


@pytest.mark.parametrize("preset", crawl_presets.PRESETS)
def test_the_starter_file_of_a_preset_sets_all_its_keys(preset: str, tmp_path: Path) -> None:
    config = configure(write(tmp_path, starter_toml(preset)))
    for key, value in crawl_presets.preset_values(preset).items():
        section, _, name = key.partition(".")
        assert to_toml(getattr(getattr(config, section), name)) == to_toml(value), key


def test_every_key_says_what_it_is() -> None:
    for name, model in sections().items():
        assert model.__doc__, name
        assert model.__struct_config__.frozen, name
        if issubclass(model, NamedSection):
            assert keys_of(rule_type(model)), name
        for key, field in keys_of(model).items():
            assert field.key.what, f"{name}.{key}"
            assert field.default is not msgspec.NODEFAULT, f"{name}.{key}"


def test_every_default_is_a_value_that_could_be_given() -> None:
    """Defaults are not converted: what they are must be what `convert` would make of them."""
    for name, model in sections().items():
        assert convert(model, to_table(model(), defaults=True)) == model(), name


def test_every_option_is_a_key() -> None:
    assert {flag.key for flag in FLAGS} <= set(keys())
    assert len(BY_NAME) == len(FLAGS)
    assert ", ".join(get_args(Preset)) in BY_NAME["politeness"].help
    assert ", ".join(get_args(Mode)) in BY_NAME["scope"].help
    for scope in get_args(Mode):
        assert configure(options={"scope": scope}).scope.scope == scope


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.option)
def test_an_option_takes_what_its_key_takes(flag: Flag) -> None:
    section, _, name = flag.key.partition(".")
    key = keys_of(sections()[section])[name]
    assert flag.many == (get_origin(key.type) is tuple)
    if flag.kind is not bool:
        is_number = key.key.read is None or flag.name == "workers"  # Which takes `auto` beside numbers.
        kinds = [kind for kind in (int, float) if kind in (key.type, *get_args(key.type)) and is_number]
        assert [flag.kind] == (kinds or [str])


def test_presets_are_those_of_the_interface() -> None:
    def delays(**options: object) -> tuple[float, float, float]:
        found = politeness(configure(options=options).politeness)
        return found.delay_s_min, found.delay_s_max, found.delay_factor

    assert delays() == (1, 60, 10)
    assert delays(politeness="gentle") == (15, 60, 10)
    assert delays(politeness="broad")[0] == 70
    assert delays(politeness="weak") == (0, 0, 0)
    assert delays(politeness="own") == (0, 0, 0)
    own = politeness(configure(options={"politeness": "own"}).politeness)
    assert (own.per_host, own.per_address) == (8, 0)
    assert politeness(configure().politeness).per_host == 1
    assert politeness(configure(options={"delay": 90.0, "per_host": 3}).politeness).delay_s_min == 90


def test_the_agent_names_the_contact() -> None:
    assert configure(options={"contact": "me@example.org"}).operator.user_agent("1") == "gossamer/1 (+me@example.org)"
    assert configure().operator.user_agent("1") == "gossamer/1"
    assert configure(sets=["operator.agent=mine/2"]).operator.user_agent("1") == "mine/2"


@pytest.mark.promise("Operation", "Every command, option and key is documented.")
def test_the_page_about_the_keys_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run: make docs"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('split_sites = ["www.example.org"]', "write 'example.org'"),
        ('split_sites = ["a b"]', "is not a site"),
        ('split_sites = ["example.org"]\nhosts.synonyms = {"a.example.org" = "a.example.net"}', "by url.hosts"),
        ('split_sites = ["example.org"]\nhosts.ends_with = {".example.net" = ".example.org"}', "by url.hosts"),
        ('split_sites = ["example.org"]\nhosts.ends_with = {".org" = ".com"}', "by url.hosts"),
        ('split_sites = ["example.org"]\nhosts.ends_with = {".com" = ".org"}', "by url.hosts"),
        ('split_sites = ["example.org"]\n[cookies]\nenabled = true', "has one jar of cookies (cookies)"),
        ('split_sites = ["example.org"]\n[state]\nhosts_store = "hosts"', "state.hosts_store keeps hosts"),
        (f'split_sites = ["example.org"]\n{LOGIN}', "has one jar of cookies (login.work)"),
    ],
)
def test_what_a_site_that_is_split_over_shards_cannot_have_is_refused(tmp_path: Path, text: str, says: str) -> None:
    assert says in complaint(write(tmp_path, f"[url]\n{text}\n"))


def test_what_concerns_other_sites_does_not_keep_a_site_from_being_split(tmp_path: Path) -> None:
    config = configure(
        write(
            tmp_path,
            '[url]\nsplit_sites = ["example.org", "a.test", "example.org"]\nhosts.starts_with = {"www." = ""}\n'
            'hosts.synonyms = {"b.example.net" = "b.example.com", "a.example.org" = "b.example.org"}\n'
            + LOGIN.replace("example.org", "example.net"),
        )
    )
    assert config.url.split_sites == ("a.test", "example.org")


def test_files_are_found_from_where_they_are_named(tmp_path: Path) -> None:
    file = tmp_path / "crawl.toml"
    file.write_text(
        "[fetch]\nca_bundle = 'ca.pem'\nlogins_file = 'netrc'\nfile_roots = ['pages']\n"
        "[archive]\nstore_secrets_file = 'store.toml'\n"
    )
    config = configure(file)
    named = (config.fetch.ca_bundle, config.fetch.logins_file, *config.fetch.file_roots)
    assert named == tuple(str(tmp_path / name) for name in ("ca.pem", "netrc", "pages"))
    assert config.archive.store_secrets_file == str(tmp_path / "store.toml")


def test_a_key_that_names_files_says_so() -> None:
    named = {key for key in keys() if re.search(r"[._](files?|bundle|store|watch_directory)$", key)}
    assert named - {"archive.store"} == {key for key in named if key_of(key).path}


def test_a_value_of_any_command_that_is_too_deep_is_refused_by_its_key() -> None:
    with pytest.raises(ConfigError, match=r"^delay_s: too many values within each other"):
        read_assignment(f"delay_s={'[' * 5_000}", "")
    assert read_assignment("delay_s = 0x10", "") == ("delay_s", 16)
    assert read_assignment("delay_s=none", "") == ("delay_s", None)
    assert read_assignment("delay_s= 1h ", "") == ("delay_s", "1h")
