import gc
import re
import tracemalloc
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.model.counters import Counters
from gossamer.model.outcomes import ANSWERED
from gossamer.model.visits import Failure, Reply
from gossamer.stages.robots.gate import PARSE_INTERVAL_S, RETRY_AFTER_S_MAX, RobotsGate, delay_asked_s, robots_url
from gossamer.stages.robots.options import RobotsOptions
from gossamer.stages.robots.record import VERSION, AnswerKind, RobotsRecord, decode, encode
from gossamer.stages.robots.rules import RobotsRules
from gossamer.url.url import Url

NOW = 1_800_000_000.0
DAY_S = 86_400.0
FAILURE = Failure("timeout", "timed out")
OPTIONS = RobotsOptions(robots_wait_max_s=21_600.0)
"""Patient, as in a continuous crawl, so that the schedule of attempts shows."""


def url(text: str) -> Url:
    return Url(text, text, 1, "example.org", "example.org", 7)


def reply(status: int, *headers: tuple[str, str], **more: Any) -> Reply:
    return Reply("https://example.org/robots.txt", status, headers, b"", "192.0.2.1", NOW, 0.1, 100, **more)


def gate(**more: Any) -> RobotsGate:
    return RobotsGate(RobotsOptions(**{"robots_wait_max_s": 21_600.0, **more}), lambda low, high: high)


def after(
    status: int, body: bytes = b"", *headers: tuple[str, str], previous: RobotsRecord | None = None, now: float = NOW
) -> RobotsRecord:
    record = gate().after_reply(previous, reply(status, *headers), body, now)
    assert isinstance(record, RobotsRecord)
    return record


def failed(previous: RobotsRecord | None, now: float, **more: Any) -> RobotsRecord:
    record = gate(**more).after_reply(previous, FAILURE, b"", now)
    assert isinstance(record, RobotsRecord)
    return record


def kind(record: RobotsRecord | None, now: float, path: str = "/x") -> str:
    return gate().verdict(record, url("https://example.org" + path), now).kind


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, AnswerKind.RULES),
        (203, AnswerKind.RULES),
        (204, AnswerKind.RULES),
        (400, AnswerKind.ALLOW_ALL),
        (401, AnswerKind.ALLOW_ALL),
        (403, AnswerKind.ALLOW_ALL),
        (404, AnswerKind.ALLOW_ALL),
        (410, AnswerKind.ALLOW_ALL),
        (451, AnswerKind.ALLOW_ALL),
        (408, AnswerKind.UNREACHABLE),
        (421, AnswerKind.UNREACHABLE),
        (425, AnswerKind.UNREACHABLE),
        (429, AnswerKind.UNREACHABLE),
        (500, AnswerKind.UNREACHABLE),
        (503, AnswerKind.UNREACHABLE),
        (599, AnswerKind.UNREACHABLE),
        (100, AnswerKind.UNREACHABLE),
        (999, AnswerKind.UNREACHABLE),
        (300, AnswerKind.ALLOW_ALL),
        (304, AnswerKind.ALLOW_ALL),
    ],
)
def test_what_a_status_means(status: int, expected: AnswerKind) -> None:
    assert after(status, b"User-agent: *\nDisallow: /").kind == expected


def test_rules_are_obeyed() -> None:
    record = after(200, b"User-agent: *\nDisallow: /x\nCrawl-delay: 3\nSitemap: /s")
    assert kind(record, NOW, "/x") == "denied"
    assert kind(record, NOW, "/y") == "allowed"
    rules = gate().rules(record, "https://example.org")
    assert rules is not None
    assert rules.crawl_delay_s == 3.0
    assert gate().sitemaps(record, "https://example.org") == ("/s",)
    assert gate().rules(None, "https://example.org") is None
    assert gate().rules(after(404), "https://example.org") is None


def test_nothing_is_asked_before_robots_txt() -> None:
    assert kind(None, NOW) == "unknown"


def test_who_does_not_obey_asks_nothing() -> None:
    assert gate(obey=False).verdict(None, url("https://example.org/x"), NOW).kind == "allowed"


def test_a_missing_file_allows_all() -> None:
    assert kind(after(404), NOW) == "allowed"


@pytest.mark.parametrize(
    ("headers", "ttl_s"),
    [
        ([], DAY_S),
        ([("Cache-Control", "max-age=7200")], 7200.0),
        ([("cache-control", "public, MAX-AGE=7200")], 7200.0),
        ([("Cache-Control", 'max-age="7200"')], 7200.0),
        ([("Cache-Control", "max-age=60")], 3600.0),
        ([("Cache-Control", "max-age=0")], 3600.0),
        ([("Cache-Control", "no-cache")], 3600.0),
        ([("Cache-Control", "no-store, max-age=9999")], 3600.0),
        ([("Cache-Control", "max-age=9999, no-store")], 3600.0),
        ([("Cache-Control", "max-age=" + "9" * 400)], DAY_S),
        ([("Cache-Control", "max-age=-5")], DAY_S),
        ([("Cache-Control", "max-age=\u0663")], DAY_S),
        ([("Cache-Control", "s-maxage=5, max-age")], DAY_S),
    ],
)
def test_how_long_a_copy_is_good(headers: list[tuple[str, str]], ttl_s: float) -> None:
    record = after(200, b"", *headers)
    assert record.expires_at == NOW + ttl_s
    assert kind(record, record.expires_at - 1) == "allowed"
    assert kind(record, record.expires_at) == "unknown"
    assert after(404, b"", *headers).expires_at == NOW + ttl_s


def test_redirects_are_followed_up_to_their_bound() -> None:
    moved = reply(301, ("Location", "https://other.example/r#x"))
    for hops in range(5):
        assert gate().after_reply(None, moved, b"", NOW, hops) == "https://other.example/r"
    record = gate().after_reply(None, moved, b"", NOW, 5)
    assert isinstance(record, RobotsRecord)
    assert record.kind == AnswerKind.ALLOW_ALL


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/r", "https://example.org/r"),
        ("//other.example/r", "https://other.example/r"),
        ("r\u00c3\u00a9", "https://example.org/r%C3%A9"),
        ("r\u00e9", "https://example.org/r%E9"),
        ("", None),
        ("ftp://example.org/r", None),
        ("javascript:x", None),
        ("https://[", None),
        (None, None),
    ],
)
def test_where_a_redirect_leads(location: str | None, target: str | None) -> None:
    headers = [("location", location)] if location is not None else []
    decided = gate().after_reply(None, reply(302, *headers), b"", NOW)
    if target is None:
        assert isinstance(decided, RobotsRecord)
        assert decided.kind == AnswerKind.ALLOW_ALL
    else:
        assert decided == target


def test_not_modified_renews_the_copy() -> None:
    first = after(200, b"User-agent: *\nDisallow: /x")
    renewed = after(304, previous=failed(first, NOW + 1), now=NOW + DAY_S)
    assert (renewed.text, renewed.fetched_at, renewed.failures) == (first.text, NOW + DAY_S, 0)


@pytest.mark.parametrize(
    ("result", "answered"),
    [
        (reply(503), True),
        (reply(200, truncated="time"), True),
        (FAILURE, False),
        (Failure("connect_error", "connection refused"), False),
    ],
)
def test_the_error_of_a_server_that_answered_can_be_told_from_others(result: Reply | Failure, answered: bool) -> None:
    """The tables have the text alone, and exports of faults judge by it."""
    record = gate().after_reply(None, result, b"", NOW)
    assert isinstance(record, RobotsRecord)
    given_up = gate(robots_wait_max_s=0.0).verdict(record, url("https://example.org/x"), NOW)
    assert given_up.kind == "given_up"
    assert (re.search(ANSWERED, given_up.reason) is not None) == answered


RULES = b"User-agent: *\nDisallow: /x"


@pytest.mark.parametrize(
    ("texts", "kinds"),
    [
        ([RULES, RULES], ["wait", "allowed"]),
        ([RULES[:20], RULES], ["wait", "wait"]),
        ([RULES[:20], RULES, RULES], ["wait", "wait", "allowed"]),
        ([RULES + b"\nAllow: /x"] * 2, ["wait", "allowed"]),
        ([b"", b""], ["wait", "wait"]),
    ],
)
@pytest.mark.parametrize("is_failure", [True, False])
def test_a_file_that_is_cut_at_the_same_byte_twice_is_whole(
    texts: list[bytes], kinds: list[str], is_failure: bool
) -> None:
    """Google takes "incomplete data" for an error of the server (robots.txt specification), which a lost connection is.
    A server that counts wrongly would never be crawled.
    """
    record: RobotsRecord | None = None
    for text, expected in zip(texts, kinds, strict=True):
        came = msgspec.structs.replace(reply(200, truncated="disconnect"), body=text)
        result = Failure("protocol_error", "cut", retry=True, came=came) if is_failure else came
        answer = gate().after_reply(record, result, b"" if is_failure else text, NOW)
        assert isinstance(answer, RobotsRecord)
        record = answer
        assert kind(record, NOW, "/y") == expected
    assert kind(record, NOW, "/x") == ("denied" if kinds[-1] == "allowed" else "wait")


def test_a_file_cut_by_time_is_no_answer() -> None:
    cut = gate().after_reply(None, reply(200, truncated="time"), b"User-agent: *\nAllow: /", NOW)
    assert isinstance(cut, RobotsRecord)
    assert cut.kind == AnswerKind.UNREACHABLE
    assert kind(cut, NOW) == "wait"
    long = gate().after_reply(None, reply(200, truncated="length"), b"User-agent: *\nDisallow: /", NOW)
    assert isinstance(long, RobotsRecord)
    assert long.kind == AnswerKind.RULES


def test_only_what_is_read_is_kept() -> None:
    record = after(200, b"User-agent: *\nDisallow: /x\n" + b"# filler\n" * 200_000)
    assert len(record.text) <= OPTIONS.body_bytes_max


def test_an_unreachable_file_disallows_and_is_asked_for_again_ever_later() -> None:
    record, now, pauses = None, NOW, []
    for _ in range(9):
        record = failed(record, now)
        assert kind(record, now) == "wait"
        assert kind(record, record.retry_at) == "unknown"
        pauses.append(record.retry_at - now)
        now = record.retry_at
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert record is not None
    assert record.first_failed_at == NOW


@pytest.mark.parametrize("outcome", ["connect_error", "dns_error"])
def test_where_there_was_no_connection_the_first_pauses_are_short(outcome: str) -> None:
    record, now, pauses = None, NOW, []
    for _ in range(11):
        record = gate().after_reply(record, Failure(outcome, "refused", retry=True), b"", now)
        assert isinstance(record, RobotsRecord)
        assert kind(record, now) == "wait"
        pauses.append(record.retry_at - now)
        now = record.retry_at
    assert pauses == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600]


@pytest.mark.parametrize(
    ("fetch_s", "expected"),
    [(0.0, [5, 10, 15, 15, 80, 160]), (5.0, [0, 5, 10, 10, 80, 160]), (20.0, [0, 0, 0, 0, 80, 160])],
)
def test_the_first_addresses_of_a_host_are_tried_with_short_pauses(fetch_s: float, expected: list[float]) -> None:
    failure = Failure("connect_error", "refused", retry=True, fetch_s=fetch_s, has_others=True)
    record, now, pauses = None, NOW, []
    for _ in expected:
        record = gate().after_reply(record, failure, b"", now)
        assert isinstance(record, RobotsRecord)
        pauses.append(record.retry_at - now)
        now = record.retry_at
    assert pauses == expected


def test_pauses_are_jittered_within_their_bound() -> None:
    def low(low: float, high: float) -> float:
        assert 0 < low < high <= 1
        return low

    record = RobotsGate(OPTIONS, low).after_reply(None, FAILURE, b"", NOW)
    assert isinstance(record, RobotsRecord)
    assert 30 <= record.retry_at - NOW < 60


def test_a_host_is_not_given_up_for_the_time_without_a_process() -> None:
    day_s = 86_400.0
    back = RobotsGate(OPTIONS, lambda low, high: high)
    back.absences = [(NOW + 5.0, NOW + day_s)]
    late = back.after_reply(failed(None, NOW), FAILURE, b"", NOW + day_s)
    assert isinstance(late, RobotsRecord)
    assert back.verdict(late, url("https://example.org/x"), NOW + day_s + 1.0).kind == "wait"
    end = NOW + day_s - 5.0 + OPTIONS.robots_wait_max_s
    assert back.verdict(failed(late, end), url("https://example.org/x"), end + 1.0).kind == "given_up"


def test_a_host_is_given_up_after_its_time() -> None:
    record = failed(None, NOW)
    end = NOW + OPTIONS.robots_wait_max_s
    late = failed(record, end - 10)
    assert gate().verdict(late, url("https://example.org/x"), end - 5).until == end
    assert kind(late, end - 5) == "wait"
    assert kind(late, end) == "given_up"
    assert "2 attempts" in gate().verdict(late, url("https://example.org/x"), end).reason
    # Who comes back much later tries once more.
    assert kind(late, late.retry_at) == "unknown"
    assert kind(failed(late, end + DAY_S), end + DAY_S) == "given_up"
    assert kind(after(404, previous=late, now=end), end) == "allowed"


REFUSED = Failure("tls_error", "SSL certificate problem: certificate has expired", host_level=True)


def refused(previous: RobotsRecord | None, now: float, failure: Failure = REFUSED) -> RobotsRecord:
    record = gate().after_reply(previous, failure, b"", now)
    assert isinstance(record, RobotsRecord)
    return record


def test_a_refused_certificate_is_given_up_after_so_many_tries_and_says_why() -> None:
    record, now = None, NOW
    for tries in range(1, OPTIONS.certificate_tries_max):
        record = refused(record, now)
        verdict = gate().verdict(record, url("https://example.org/x"), now)
        assert (verdict.kind, verdict.until) == ("wait", record.retry_at)
        attempts = f"{tries} attempt{'s' * (tries > 1)}"
        assert verdict.reason == f"could not fetch https://example.org/robots.txt ({attempts}): {REFUSED.error}"
        now = record.retry_at
    assert now - NOW < 100, "a wait rarely mends it"
    record = refused(record, now)
    verdict = gate().verdict(record, url("https://example.org/x"), now)
    assert (verdict.kind, verdict.reason) == (
        "given_up",
        f"could not fetch https://example.org/robots.txt (5 attempts): {REFUSED.error}",
    )
    assert record.retry_at >= now + OPTIONS.ttl_s, "nobody asks again whenever a URL has its turn"
    assert kind(record, record.retry_at) == "unknown"
    assert kind(refused(record, record.retry_at), record.retry_at) == "given_up"
    assert kind(refused(None, record.retry_at), record.retry_at) == "wait"


def test_only_certificates_in_a_row_count() -> None:
    for other in (FAILURE, Failure("tls_error", "the handshake broke off", retry=True, host_level=True)):
        record, now = None, NOW
        for failure in (REFUSED, REFUSED, REFUSED, REFUSED, other, REFUSED, REFUSED, REFUSED, REFUSED):
            record = refused(record, now, failure)
            assert kind(record, now) == "wait"
            now = record.retry_at
    good = after(200, b"User-agent: *\nDisallow: /x")
    later = NOW + OPTIONS.ttl_s
    for _ in range(9):
        good = refused(good, later)
        assert kind(good, later) == "denied", "an older copy is obeyed, whatever fails"
        later = max(later, good.retry_at)


def test_a_host_whose_turns_are_rare_is_given_up_all_the_same() -> None:
    """Each turn comes after the pause is over, so each turn could ask again: one that failed too late is the last."""
    record, now = None, NOW
    for _ in range(1_000):
        record = failed(record, now)
        if kind(record, now) == "given_up":
            break
        now = record.retry_at + 600.0
        assert kind(record, now) == "unknown"
    assert NOW + OPTIONS.robots_wait_max_s <= now <= NOW + OPTIONS.robots_wait_max_s + 2 * 3_600 + 600
    assert record is not None
    assert kind(record, now + 0.9 * OPTIONS.ttl_s) == "given_up"
    assert kind(record, now + OPTIONS.ttl_s) == "unknown", "after a day somebody may try again"


def test_an_older_copy_stands_while_the_refresh_fails() -> None:
    record = after(200, b"User-agent: *\nDisallow: /x")
    now = NOW + DAY_S
    assert kind(record, now) == "unknown"
    while now < NOW + OPTIONS.stale_s_max:
        record = failed(record, now)
        assert kind(record, now, "/x") == "denied"
        assert kind(record, now, "/y") == "allowed"
        assert kind(record, record.retry_at) == "unknown"
        now = record.retry_at + DAY_S
    record = failed(record, now)
    assert kind(record, now) == "given_up"


def test_a_copy_that_is_good_is_obeyed_whatever_failed() -> None:
    record = failed(after(200, b""), NOW + 10)
    assert kind(record, NOW + 20) == "allowed"
    assert kind(record, record.retry_at) == "allowed"


def test_an_answer_forgets_the_failures() -> None:
    record = after(200, b"", previous=failed(failed(None, NOW), NOW + 100), now=NOW + 200)
    assert (record.failures, record.first_failed_at, record.retry_at) == (0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("value", "expected_s"),
    [
        ("120", 120.0),
        (" 120 ", 120.0),
        ("Fri, 15 Jan 2027 08:02:00 GMT", 120.0),
        ("Friday, 15-Jan-27 08:02:00 GMT", 120.0),
        ("Fri Jan 15 08:02:00 2027", 120.0),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
        ("9" * 400, RETRY_AFTER_S_MAX),
        ("Fri, 15 Jan 9999 07:00:00 GMT", RETRY_AFTER_S_MAX),
        ("-5", 0.0),
        ("soon", 0.0),
        ("Fri, 99 Foo 2027 99:99:99 GMT", 0.0),
        ("", 0.0),
    ],
)
def test_retry_after(value: str, expected_s: float) -> None:
    assert delay_asked_s(reply(503, ("Retry-After", value)), NOW) == expected_s
    assert after(503, b"", ("Retry-After", value)).retry_at == NOW + max(60.0, expected_s)


def test_a_longer_retry_after_wins_and_still_ends() -> None:
    record = after(429, b"", ("Retry-After", "999999"))
    assert record.retry_at == NOW + 999_999
    assert kind(record, NOW + OPTIONS.robots_wait_max_s - 1) == "wait"
    assert kind(record, NOW + OPTIONS.robots_wait_max_s) == "given_up"


def test_one_file_for_each_origin() -> None:
    assert robots_url(url("https://u:p@example.org:8443/x?y")) == "https://example.org:8443/robots.txt"
    shared = gate()
    record = after(200, b"User-agent: *\nDisallow: /x")
    other = after(200, b"User-agent: *\nDisallow: /y")
    for _ in range(2):
        assert shared.verdict(record, url("https://example.org/x"), NOW).kind == "denied"
        assert shared.verdict(other, url("http://example.org/x"), NOW).kind == "allowed"


def test_parsed_rules_are_kept_within_their_bounds() -> None:
    for bounded in (gate(cache_hosts_max=3), gate(cache_bytes_max=5_000)):
        record = after(200, b"User-agent: *\nDisallow: /x")
        for i in range(50):
            assert bounded.verdict(record, url(f"https://h{i}.example/x"), NOW).kind == "denied"
        assert len(bounded._rules) <= 4
    many = gate(cache_bytes_max=0)
    assert many.verdict(after(200, b"User-agent: *\nDisallow: /x"), url("https://h/x"), NOW).kind == "denied"


SHAPES = (
    [b"Disallow: /%x" % i for i in range(40_000)],
    [b"Disallow: /a/longer/path/%d/than/most" % i for i in range(9_000)],
    [b"Disallow: /*a%d*b*c" % i for i in range(20_000)],
    [b"Disallow: /a%d*%%2F$" % i for i in range(20_000)],
    [b"Disallow: /" + b"*ab" * 2_000 + b"%d" % i for i in range(80)],
    [b"Sitemap: https://example.org/%d.xml" % i for i in range(1_000)],
    [b"Content-Usage: /%d train-ai=n, search=y" % i for i in range(500)],
)


@pytest.mark.parametrize("lines", SHAPES)
def test_parsed_rules_take_no_more_memory_than_is_counted(lines: Sequence[bytes]) -> None:
    text = b"\n".join([b"User-agent: *", *lines])[:500_000]
    tracemalloc.start()
    try:
        rules = RobotsRules.parse(text)
        rules.statements("/x")
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] <= rules.held_bytes
    finally:
        tracemalloc.stop()


def test_long_files_with_few_rules_for_us_are_parsed_once() -> None:
    kept = gate(cache_bytes_max=4 << 20)  # A third of their texts.
    record = after(200, b"User-agent: other\n" + b"Disallow: /some/path\n" * 2_000 + b"User-agent: *\nDisallow: /x")
    for _ in range(3):
        for i in range(300):
            assert kept.verdict(record, url(f"https://h{i}.example/x"), NOW).kind == "denied"
    counters = Counters()
    kept.count(counters)
    assert (counters.robots_misses, counters.robots_hits) == (300, 600)


@pytest.mark.promise("Bounds", "Long robots.txt of many hosts, which memory does not hold, are parsed at intervals.")
def test_long_files_that_memory_does_not_hold_are_parsed_in_turn() -> None:
    kept = gate(cache_bytes_max=0)
    text = b"User-agent: *\n" + b"".join(b"Disallow: /some/path/%d\n" % i for i in range(1_500))
    record, short = after(200, text), after(200, b"User-agent: *\nDisallow: /x")
    origins = [f"https://h{i}.example" for i in range(50)]
    now, parsed, turns = NOW, [0] * len(origins), 0

    def visit(at: int) -> float:
        turn_at = kept.turn_at(record, origins[at], now)
        if turn_at <= now:
            kept.verdict(record, url(f"{origins[at]}/x"), now)
            parsed[at] += 1
        return turn_at

    due = dict.fromkeys(range(len(origins)), NOW)
    while now < NOW + 6.0:
        for at in [at for at, due_at in due.items() if due_at <= now]:
            due[at] = max(visit(at), now + 0.1)
            turns += 1
        now = min(due.values())
    interval_s = PARSE_INTERVAL_S * len(record.text)
    assert 3 * len(origins) < sum(parsed) <= 6.0 / interval_s + 3
    assert max(parsed) - min(parsed) <= 2, "each in its turn"
    assert turns < 3 * sum(parsed), "who waits does not look for its turn again and again"
    assert kept.turn_at(short, "https://short.example", now) == now
    assert kept.turn_at(record, origins[parsed.index(max(parsed))], now) >= now
    assert kept.turn_at(None, origins[0], now) == now


def test_the_statements_of_a_long_file_without_any_are_known_unparsed() -> None:
    kept, counters = gate(cache_bytes_max=0), Counters()
    silent = after(200, b"User-agent: *\n" + b"Disallow: /some/path\n" * 20_000)
    assert kept.stating(silent, "https://h.example") is None
    kept.count(counters)
    assert (counters.robots_misses, counters.robots_hits) == (0, 0)
    for line in (
        b"Content-Usage: train-ai=n",
        b"content-signal: search=no",
        b"LICENSE: https://h.example/l",
        b"LLM-Policy: /p",
    ):
        assert kept.stating(after(200, b"User-agent: *\n" + line), "https://h.example") is not None


def test_records_come_back_as_they_were() -> None:
    record = failed(after(200, b"\xff\x00"), NOW + 1)
    assert decode(encode(record)) == record


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\xff" * 10, encode(RobotsRecord(AnswerKind.RULES, version=VERSION + 1))]
)
def test_records_of_another_version_are_none(data: bytes) -> None:
    assert decode(data) is None


REPLIES = st.builds(
    lambda status, headers, truncated: reply(status, *headers, truncated=truncated),
    st.integers(0, 1000),
    st.lists(
        st.tuples(
            st.sampled_from(["location", "Cache-Control", "Retry-After", "x"]),
            st.text(alphabet=st.characters(max_codepoint=255), max_size=30),
        ),
        max_size=4,
    ),
    st.sampled_from(["", "length", "time"]),
)


@given(st.just(FAILURE) | REPLIES, st.binary(max_size=100), st.integers(0, 10), st.booleans(), st.floats(0, 4e9))
def test_no_answer_is_an_error(came: Reply | Failure, body: bytes, hops: int, known: bool, now: float) -> None:
    previous = after(200, b"User-agent: *\nDisallow: /") if known else None
    decided = gate().after_reply(previous, came, body, now, hops)
    if isinstance(decided, RobotsRecord):
        assert decode(encode(decided)) == decided
        verdict = gate().verdict(decided, url("https://example.org/x"), now)
        assert verdict.kind in ("allowed", "denied", "wait", "given_up", "unknown")
        # What was just asked for is not asked for again at once.
        assert verdict.kind != "unknown"
        if verdict.kind == "wait":
            assert verdict.until > now
    else:
        assert hops < 5


def test_a_record_from_before_the_clock_was_set_back_is_not_believed() -> None:
    """Neither that a copy is good for years, nor that the next try is years away."""
    copy = after(200, b"User-agent: *\nDisallow: /private/")
    failed = gate().after_reply(copy, FAILURE, b"", NOW + DAY_S)
    assert isinstance(failed, RobotsRecord)
    for record in (copy, failed):
        assert (
            gate().verdict(record, url("https://example.org/private/"), record.last_request_at + 1.0).kind == "denied"
        )
        assert gate().verdict(record, url("https://example.org/private/"), NOW - 3_600.0).kind == "unknown"
    again = gate().after_reply(failed, FAILURE, b"", NOW - 3_600.0)
    assert isinstance(again, RobotsRecord)
    assert again.first_failed_at == NOW - 3_600.0, "it is given up on as late as if it had failed first now"
    assert again.retry_at < NOW
