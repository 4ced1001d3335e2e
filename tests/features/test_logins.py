"""Logins step by step: what each answer leads to, what is never done, and when one is given up."""

from __future__ import annotations

from collections.abc import Iterator
from email import policy
from email.parser import BytesParser
from pathlib import Path

import msgspec
import pytest

from gossamer.engine.history import attempt_row
from gossamer.features.logins.logins import BY_HAND, FormLogins
from gossamer.features.logins.options import LoginRule
from gossamer.features.logins.sessions import BOUNCES_MAX, BOUNCES_S, Jars, Sessions
from gossamer.model.links import Found, Prerequisite, Verdict, Visit
from gossamer.model.pages import Visited
from gossamer.model.visits import Failure, Reply, Request
from gossamer.options import convert
from gossamer.stages.process.forms import form_of
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url

LOGIN = "https://www.a.test/login"
URLENCODED = "application/x-www-form-urlencoded"
FORM = b"""<base href="/in/"><form action=search><input name=q></form>
<form method=POST action="session?x=1"><input type=hidden name=csrf value="&lt;1&gt;"><input name=user>
<input type=password name=pw><select name=lang><option>en<option selected value=de>D</select>
<input type=checkbox name=keep checked><input type=checkbox name=spy><input type=submit name=go></form>"""
RULE = {"url": LOGIN, "fields": {"user": "me", "pw": "s3cret &"}, "check": {"text": "Log out"}, "place": ".a.test"}


def named(text: str) -> Url:
    url = Namer().name(text)
    assert url is not None
    return url


PAGE, OTHER_HOST = named("https://www.a.test/page"), named("https://docs.a.test/page")


def reply(status: int = 200, url: str = LOGIN, **headers: str) -> Reply:
    return Reply(url, status, tuple(headers.items()), b"", "127.0.0.1", 0.0, 0.1, 10, media_type="text/html")


class Book:
    """The logins under test, with what they tell, in a store that can be opened again."""

    def __init__(self, directory: Path, **rule: object) -> None:
        self.directory = directory
        self.rule = convert(LoginRule, {**RULE, **rule})
        self.cookies: set[str] = set()
        self.warned: list[tuple[str, str]] = []
        self.unparked: list[Url] = []
        self.open()

    def open(self) -> None:
        self.store = Store(self.directory)
        self.epochs = Epochs(self.store)
        self.logins = FormLogins(
            {"a": self.rule}, Namer(), self.epochs, lambda *_: (), lambda *_: self.cookies, (30.0, 60.0),
            lambda _feature, subject, sentence: self.warned.append((subject, sentence)),
            lambda url, _now: self.unparked.append(url),
        )  # fmt: skip

    def content_type(self, prerequisite: Prerequisite) -> str:
        request = self.logins.fetch(prerequisite, Request(LOGIN, "127.0.0.1", 80), 0.0)
        return dict(request.headers)["Content-Type"]

    def verdict(self, url: Url, now: float) -> Verdict:
        """Judge a URL, and do with the verdict what the ring does."""
        verdict = self.logins.judge(url, now)
        if verdict.allowed:
            self.logins.reserve(url, now)
        elif verdict.owner:
            self.logins.wait(url, verdict, now)
        return verdict

    def close(self) -> None:
        self.store.close()

    def begin(self, now: float = 0.0) -> Prerequisite:
        verdict = self.verdict(PAGE, now)
        assert verdict.park
        assert verdict.prerequisite is not None
        return verdict.prerequisite

    def answer(
        self, prerequisite: Prerequisite | None, result: Reply | Failure, body: bytes = b"", now: float = 0.0
    ) -> Prerequisite | None:
        assert prerequisite is not None
        return self.logins.answered(prerequisite, result, body, now)

    def log_in(self) -> None:
        first = self.begin()
        assert self.answer(self.answer(first, reply(), FORM), reply(), b"<p>Log out") is None
        assert self.unparked.pop() == PAGE


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    made = Book(tmp_path)
    yield made
    made.close()


def test_the_form_is_sent_with_its_hidden_fields(book: Book) -> None:
    first = book.begin()
    assert (first.url.text, first.form, first.subject) == (LOGIN, b"", "a")
    posted = book.answer(first, reply(), FORM)
    assert posted is not None
    assert posted.url.text == "https://www.a.test/in/session?x=1"
    assert posted.form == b"csrf=%3C1%3E&lang=de&keep=on&go=Submit&user=me&pw=s3cret+%26"
    landing = book.answer(posted, reply(302, posted.url.text, Location="/home"))
    assert landing is not None
    assert (landing.url.text, landing.form) == ("https://www.a.test/home", b"")
    assert book.answer(landing, reply(), b"<a>Log out</a>") is None
    assert book.warned == [("a", "")]
    assert book.verdict(PAGE, 0.0).allowed


@pytest.mark.parametrize(
    ("charset", "attribute", "sent"),
    [
        ("iso-8859-1", "", "%FC%80"),
        ("iso-8859-2", "", "%FC%26%238364%3B"),
        ("iso-8859-1", "accept-charset='UNKNOWN utf-8'", "%C3%BC%E2%82%AC"),
        ("", "accept-charset=windows-1252", "%FC%80"),
        ("utf-16le", "", "%C3%BC%E2%82%AC"),
    ],
)
def test_a_form_is_sent_in_its_encoding(book: Book, charset: str, attribute: str, sent: str) -> None:
    page = f"<form method=post {attribute}><input name=user><input name=pw><input name=t value='ü€'></form>"
    body = page.encode({"": "utf-8", "iso-8859-1": "cp1252"}.get(charset, charset), "xmlcharrefreplace")
    answer = msgspec.structs.replace(reply(), charset=charset)
    posted = book.answer(book.begin(), answer, body)
    assert posted is not None
    assert posted.form.partition(b"&")[0] == f"t={sent}".encode()


@pytest.mark.parametrize(("attribute", "sent"), [("", b"UTF-8"), ("accept-charset=latin1", b"windows-1252")])
def test_a_form_says_its_encoding_where_it_asks(book: Book, attribute: str, sent: bytes) -> None:
    page = f"<form method=post {attribute}><input type=hidden name=_charset_><input name=user><input name=pw></form>"
    posted = book.answer(book.begin(), msgspec.structs.replace(reply(), charset="utf-8"), page.encode())
    assert posted is not None
    assert posted.form.partition(b"&")[0] == b"_charset_=" + sent


@pytest.mark.parametrize("enctype", ["multipart/form-data", "text/plain", "application/x-www-form-urlencoded", "odd"])
def test_a_form_is_sent_as_its_type_says(book: Book, enctype: str) -> None:
    page = f"""<form method=post enctype='{enctype.upper()}'><input name=user><input name=pw>
        <textarea name='a"ü'>1\n€</textarea></form>"""
    posted = book.answer(book.begin(), msgspec.structs.replace(reply(), charset="utf-8"), page.encode())
    assert posted is not None
    kind = book.content_type(posted)
    if enctype == "multipart/form-data":
        message = BytesParser(policy=policy.HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + posted.form)
        parts = [
            (one.get_param("name", header="content-disposition"), one.get_payload(decode=True))
            for one in message.iter_parts()
        ]
        assert parts == [("a%22ü", "1\r\n€".encode()), ("user", b"me"), ("pw", b"s3cret &")]
    elif enctype == "text/plain":
        assert (kind, posted.form.decode()) == ("text/plain", 'a"ü=1\r\n€\r\nuser=me\r\npw=s3cret &\r\n')
    else:
        assert kind == "application/x-www-form-urlencoded"
        assert posted.form == b"a%22%C3%BC=1%0D%0A%E2%82%AC&user=me&pw=s3cret+%26"


def test_hosts_wait_for_one_login_and_then_for_each_other(book: Book) -> None:
    first = book.begin()
    other = book.verdict(OTHER_HOST, 0.0)
    assert (other.park, other.prerequisite) == (True, None)
    posted = book.answer(first, reply(), FORM)
    assert posted is not None
    assert book.unparked == [], "it is not over"
    book.answer(posted, reply(), b"Log out")
    assert book.unparked == [PAGE, OTHER_HOST]
    assert book.verdict(PAGE, 0.0).allowed
    assert book.verdict(OTHER_HOST, 0.0).park
    assert book.logins.release(PAGE) == [OTHER_HOST]
    assert book.logins.release(PAGE) == []
    assert book.verdict(OTHER_HOST, 0.0).allowed
    assert book.verdict(named("https://b.test/"), 0.0).allowed, "it needs no session"


def test_what_would_end_the_session_is_excluded(book: Book) -> None:
    book.log_in()
    never = ["https://docs.a.test/logout", "https://www.a.test/x/log-out?y", "https://www.a.test/signOut", LOGIN + "?x"]
    assert {book.verdict(named(url), 0.0).outcome for url in never} == {"excluded"}
    assert book.verdict(named("https://www.a.test/blogouts"), 0.0).allowed


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<form><input name=user></form>", "no form with the fields user, pw at https://www.a.test/login"),
        (FORM.replace(b"POST", b"get"), "its form would put the fields into a URL"),
        (
            FORM.replace(b'"session', b'"https://evil.test/'),
            f"its form leads to another origin, https://evil.test: {BY_HAND}",
        ),
        (
            FORM.replace(b'"session', b'"http://www.a.test/'),
            f"its form leads to another origin, http://www.a.test: {BY_HAND}",
        ),
    ],
)
def test_forms_that_are_not_sent(book: Book, body: bytes, reason: str) -> None:
    assert book.answer(book.begin(), reply(), body) is None
    verdict = book.verdict(PAGE, 1.0)
    assert verdict.reason == f"login.a: {reason} (1 of 3 attempts)"
    assert verdict.wait_until == 30.0


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (reply(307, Location="/x"), "the form's answer would have it sent elsewhere"),
        (reply(302, Location="https://evil.test/"), f"it redirects to another site, https://evil.test/: {BY_HAND}"),
        (reply(403), "the check failed: no text 'Log out' after HTTP 403"),
        (Failure("timeout", "timed out"), "timed out"),
    ],
)
def test_answers_that_are_not_followed(book: Book, result: Reply | Failure, reason: str) -> None:
    assert book.answer(book.answer(book.begin(), reply(), FORM), result, b"Try again") is None
    assert book.verdict(PAGE, 1.0).reason.startswith(f"login.a: {reason} (1 of 3")


@pytest.mark.parametrize(
    ("login", "to", "is_page"),
    [
        (LOGIN, LOGIN + "?next=/b", True),
        (LOGIN + "?next=/a", LOGIN + "?next=/b", True),
        (LOGIN + "?do=login&next=%2Fa", LOGIN + "?next=%2Fb&do=login", True),
        (LOGIN + "?title=Special:UserLogin", LOGIN + "?title=Special%3AUserLogin&returnto=Home", True),
        (LOGIN + "?title=Special:UserLogin", LOGIN + "?title=Home", False),
        (LOGIN + "?login", LOGIN + "?page", False),
        (LOGIN + "?login", LOGIN, False),
    ],
)
def test_a_script_that_shows_all_pages_is_the_logins_page_with_its_parameters_alone(
    tmp_path: Path, login: str, to: str, is_page: bool
) -> None:
    book = Book(tmp_path, url=login)
    assert (book.verdict(named(to), 0.0).outcome == "excluded") is is_page
    book.log_in()
    assert bool(book.logins.why_logged_out(PAGE, reply(302, PAGE.text, Location=to), 0.0)) is is_page
    book.close()


def test_a_circle_of_redirects_ends(book: Book) -> None:
    prerequisite: Prerequisite | None = book.begin()
    for _ in range(5):
        prerequisite = book.answer(prerequisite, reply(302, Location="/circle"))
        assert prerequisite is not None
    assert book.answer(prerequisite, reply(302, Location="/circle")) is None


@pytest.mark.promise("Bounds", "Logins that fail in a row are given up after a number that is configured.")
def test_a_login_that_fails_is_given_up(book: Book) -> None:
    now = 0.0
    for pause_s in (30.0, 60.0):
        assert book.answer(book.begin(now), reply(404), now=now) is None
        assert book.verdict(PAGE, now).wait_until == now + pause_s, "it doubles"
        now += pause_s
    assert book.answer(book.begin(now), reply(404), now=now) is None
    verdict = book.verdict(PAGE, now)
    assert (verdict.outcome, verdict.park) == ("login_required", False)
    ((subject, sentence),) = book.warned
    assert subject == "a"
    assert sentence.startswith("login.a was given up: HTTP 404 at https://www.a.test/login (3 of 3 attempts); URLs")


def test_a_login_that_is_under_way_begins_again_where_its_partition_goes(book: Book) -> None:
    posted = book.answer(book.begin(), reply(), FORM)
    partition = PAGE.partition
    book.logins.moved(partition + 1, 4096)
    book.logins.moved(0, partition)
    assert book.warned == []
    book.logins.moved(partition - 1, partition + 1)
    assert book.warned == [("a", "")]
    assert book.begin().form == b"", "the form is fetched again"
    assert book.answer(posted, reply(), b"<p>Log out") is None
    assert not book.verdict(PAGE, 0.0).allowed, "an answer to the login before is none to this one"


def test_logins_that_bring_no_page_are_given_up(book: Book) -> None:
    for _ in range(3):
        book.log_in()
        assert book.verdict(PAGE, 0.0).allowed
        assert (
            book.logins.why_logged_out(PAGE, reply(302, Location="/login?again"), 0.0)
            == "it redirects to the page of login.a"
        )
        book.logins.release(PAGE)
    assert book.verdict(PAGE, 0.0).outcome == "login_required"
    assert book.warned[-1][1].startswith("login.a was given up: 3 logins in a row brought no page")


def test_pages_that_an_account_may_not_see_do_not_end_a_login_that_brought_others(book: Book) -> None:
    def visit(answer: Reply, body: bytes | None = None) -> None:
        if (verdict := book.verdict(PAGE, 0.0)).park:
            book.log_in()
            verdict = book.verdict(PAGE, 0.0)
        assert verdict.allowed
        book.logins.why_logged_out(PAGE, answer, 0.0, body)
        book.logins.release(PAGE)

    visit(reply(), b"content")
    for _ in range(50):
        visit(reply(401))
    assert len(book.warned) == 4, "it logs in three times more, and keeps that session"
    visit(reply(), b"content")
    visit(reply(401))
    assert book.verdict(PAGE, 0.0).park, "a page shows that the session was a good one: this is its end"
    for _ in range(99):
        visit(reply(401))
    assert book.verdict(PAGE, 0.0).outcome == "login_required"
    assert book.warned[-1][1].startswith("login.a was given up: 3 logins in a row brought no page: HTTP 401")


@pytest.mark.parametrize(
    ("answer", "body", "ended"),
    [
        (reply(401), None, True),
        (reply(), FORM, True),
        (reply(), b'<p class="guest">Hello', True),
        (reply(302, Location="/login?next=/page"), None, True),
        (reply(302, Location="/x"), None, False),
        (reply(403), None, False),
        (reply(), b"<p>the password is a secret", False),
    ],
)
def test_what_shows_the_end_of_a_session(tmp_path: Path, answer: Reply, body: bytes | None, ended: bool) -> None:
    book = Book(tmp_path, logged_out="p.guest")
    book.log_in()
    assert book.verdict(PAGE, 0.0).allowed
    assert (book.logins.why_logged_out(PAGE, answer, 0.0, body) != "") == ended
    book.logins.release(PAGE)
    assert book.verdict(PAGE, 0.0).park == ended, "it logs in again"
    book.close()


@pytest.mark.parametrize("committed", [True, False])
def test_a_session_is_as_durable_as_the_epoch(tmp_path: Path, committed: bool) -> None:
    book = Book(tmp_path)
    book.log_in()
    if committed:
        book.epochs.close_at_once()
    book.close()
    book.open()
    assert book.verdict(PAGE, 0.0).allowed == committed
    book.close()


def test_a_token_is_taken_from_json(tmp_path: Path) -> None:
    book = Book(tmp_path, token="data.access", check=None)
    sent = book.begin()
    assert (sent.url.text, sent.form) == (LOGIN, b'{"user": "me", "pw": "s3cret &"}')
    assert book.content_type(sent) == "application/json"
    assert book.answer(sent, reply(), b'{"data": {"access": "t0k"}}') is None
    assert book.logins.token(PAGE) == "t0k"
    assert book.logins.token(named("https://b.test/")) == ""
    book.close()


@pytest.mark.parametrize(("status", "body"), [(200, b"[]"), (200, b"{"), (403, b'{"data": {"access": "t"}}')])
def test_an_answer_without_token_is_a_login_that_failed(tmp_path: Path, status: int, body: bytes) -> None:
    book = Book(tmp_path, token="data.access", check=None)
    assert book.answer(book.begin(), reply(status), body) is None
    assert book.verdict(PAGE, 0.0).wait_until == 30.0
    book.close()


@pytest.mark.parametrize(
    ("controls", "sent"),
    [
        ("<button>Go</button><button name=b>", []),
        (
            "<button type=button name=a></button><button name=b value=1></button><input type=submit name=c>",
            [("b", "1")],
        ),
        ("<input type=submit name=a disabled><input type=submit name=login value='Log in'>", [("login", "Log in")]),
        ("<input type=image name=go src=go.png><button name=b>", [("go.x", "0"), ("go.y", "0")]),
        ("<input type=image>", [("x", "0"), ("y", "0")]),
        (
            "<fieldset disabled><legend><input name=a></legend><legend><input name=b></legend><input name=c>",
            [("a", "")],
        ),
        ("<fieldset disabled><fieldset><legend><input name=a></legend></fieldset></fieldset>", []),
        ("<select name=a><option> Two \n\xa0words<option>x</select>", [("a", "Two \xa0words")]),
        ("<select name=a><option value='' disabled selected>Choose<option value=1>1</select>", []),
        (
            "<select name=a><option disabled>0<optgroup disabled><option>1</optgroup><option value=2>3</select>",
            [("a", "2")],
        ),
        (
            "<select name=a multiple><option selected>1<option>2<option selected>3<option selected disabled>4</select>",
            [("a", "1"), ("a", "3")],
        ),
        (
            "<select name=a multiple><option>1</select><select name=b><option selected>1<option selected>2</select>",
            [("b", "2")],
        ),
        ("<button name=cancel value=1></button><button name=named value=2></button>", []),
        ("<input name=off value=1 disabled><input type=reset name=r><input type=file name=f>", []),
        ("<select name=s><option value=''>choose<option value=1>one</select>", [("s", "")]),
        ("<select name=s><option> one </select><input type=radio name=r value='' checked>", [("s", "one"), ("r", "")]),
    ],
)
def test_a_form_is_sent_as_a_browser_sends_it(controls: str, sent: list[tuple[str, str]]) -> None:
    names = ["user", "named"] if "named" in controls else ["user"]
    found = form_of(f"<form method=post><input name=user>{controls}</form>".encode(), "", LOGIN, names)
    assert found is not None
    assert found.fields[1:] == sent


@pytest.mark.parametrize(
    ("form", "buttons", "wanted"),
    [
        ("", "<button formaction=/b formmethod=POST name=a>", ("/b", "post", URLENCODED)),
        ("method=post action=/a", "<button>1</button><button formaction=/b>", ("/a", "post", URLENCODED)),
        ("method=post", "<button>1</button><button name=named formaction=b>", ("/b", "post", URLENCODED)),
        ("action=/a", "<input type=image formmethod=post formenctype=TEXT/plain>", ("/a", "post", "text/plain")),
        ("action=/a", "<button disabled formaction=/b>", ("/a", "get", URLENCODED)),
    ],
)  # fmt: skip
def test_a_button_names_where_its_form_goes(form: str, buttons: str, wanted: tuple[str, str, str]) -> None:
    names = ["user", *(["named"] if "named" in buttons else [])]
    found = form_of(f"<form {form}><input name=user>{buttons}</form>".encode(), "", LOGIN, names)
    assert found is not None
    _, enctype = found.encode(found.fields)
    assert (found.action.removeprefix("https://www.a.test"), found.method, enctype) == wanted


@pytest.mark.parametrize(
    "body",
    [
        "<table><form method=post><tr><td><input name=user><input name=pw></form></table><form><input name=q></form>",
        "<form id=f method=post><input name=user></form><form><input name=q><input form=f name=pw></form>",
    ],
)
def test_controls_are_their_forms_own(body: str) -> None:
    found = form_of(body.encode(), "", LOGIN, ["user", "pw"])
    assert found is not None
    assert (found.method, found.fields) == ("post", [("user", ""), ("pw", "")])


def test_a_form_is_found_by_its_selector() -> None:
    found = form_of(b"<form id=a><input name=x></form><form id=b method=post></form>", "", LOGIN, ["y"], "#b")
    assert found is not None
    assert (found.action, found.method, found.fields) == (LOGIN, "post", [])
    for made in (b"<form>" * 30_000, b"<table>" + b"<form id=x></form><input form=x>" * 6_000):
        assert form_of(made, "", LOGIN, ["y"]) is None, "a page that is made to cost much"


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ("a=s3cret; Path=/", "a=[redacted]; Path=/"),
        ("s3cret; Path=/", "=[redacted]; Path=/"),
        ("=s3cret", "=[redacted]"),
    ],
)
def test_no_value_of_a_cookie_is_shown(tmp_path: Path, header: str, shown: str) -> None:
    store = Store(tmp_path)
    sessions = Sessions(Jars(Epochs(store), None))
    assert sessions.received(PAGE, reply(200, PAGE.text, **{"Set-Cookie": header}), 0.0).headers == (
        ("Set-Cookie", shown),
    )
    store.close()


def test_a_redirect_is_requested_again_for_other_cookies_also_after_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path)
    epochs = Epochs(store)

    def sessions() -> Sessions:
        return Sessions(Jars(epochs, None))

    def visit(found: Sessions, sets: str = "", now: float = 0.0) -> None:
        found.headers(PAGE, Visit(PAGE, 0, 0, "seed", ""), now)
        found.received(PAGE, reply(302, PAGE.text, **({"Set-Cookie": sets} if sets else {})), now)
        row = attempt_row(Visit(PAGE, 0, 0, "seed", ""), "redirected", now)
        found.concluded(Visited(PAGE, row, links=[Found("/", "redirect")]), now)

    first = sessions()
    visit(first)
    assert not first.bounces(PAGE, "redirected", 0.0), "no cookie was set"
    visit(first, "a=0")
    assert not sessions().bounces(PAGE, "fetched", 0.0), "its last visit did not lead elsewhere"
    assert sessions().bounces(PAGE, "redirected", 0.0)
    for again in range(1, BOUNCES_MAX):
        visit(first, f"a={again}")
        assert sessions().bounces(PAGE, "redirected", 0.0)
    visit(first, "a=last")
    assert not sessions().bounces(PAGE, "redirected", 0.0), "a chain that sets a new cookie each time ends"
    visit(first, "a=later", BOUNCES_S)
    assert sessions().bounces(PAGE, "redirected", BOUNCES_S), "a revisit: the cookie had expired"
    store.close()


def test_resources_of_a_page_use_its_session_and_wait_for_a_login_only(book: Book) -> None:
    resource = named("https://www.a.test/api")
    assert book.logins.judge_resource(resource, 0.0).allowed, "of a page that needs no login"
    first = book.begin()
    assert book.logins.judge_resource(resource, 0.0).park
    assert book.answer(book.answer(first, reply(), FORM), reply(), b"<p>Log out") is None
    assert book.verdict(PAGE, 0.0).allowed
    assert not book.verdict(OTHER_HOST, 0.0).allowed, "its session is used by one visit at a time"
    assert book.logins.judge_resource(resource, 0.0).allowed
    assert book.logins.judge_resource(named(LOGIN), 0.0).outcome == "excluded"


def test_a_script_that_leads_to_the_login_page_ends_the_session(book: Book) -> None:
    book.log_in()
    assert book.logins.why_logged_out(PAGE, reply(), 0.0, b"<p>Page", ["https://www.a.test/other"]) == ""
    why = book.logins.why_logged_out(PAGE, reply(), 0.0, b"<p>Page", ["https://www.a.test/login?next=/page"])
    assert why == "it redirects to the page of login.a"
    assert not book.logins.judge(PAGE, 0.0).allowed
