"""Logins: decides when sessions begin and end; one request at a time uses a session. No clock, no waiting, no I/O.

A login is a prerequisite fetch, like a robots.txt: the hosts that need it are parked, its requests pass every gate, and
its result releases the hosts. Its requests and replies are not archived.

    out ─► form ─► sent ─► landing ─► in ─► out …        failed, after `attempts_max` in a row
                                      in ◄► check        whether the session goes on, after what may have ended it
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Literal
from urllib.parse import parse_qsl

import msgspec

from gossamer.engine.history import PageRecord
from gossamer.features.logins.endings import SessionEndings
from gossamer.features.logins.options import LoginRule
from gossamer.model.links import ALLOWED, SCRIPT, Prerequisite, RevisitPlan, Verdict, Visit
from gossamer.model.visits import REPEATS_THE_BODY, Failure, Reply, Request
from gossamer.options import to_table
from gossamer.ports import Conclusion, ExaminedPage, VisitMiddleware
from gossamer.stages.fetch.options import RequestRule
from gossamer.stages.fetch.rules import RequestRules
from gossamer.stages.process.forms import form_of, shows
from gossamer.stages.process.links import redirect_target
from gossamer.state.epoch import Epochs
from gossamer.url.name import Namer
from gossamer.url.url import Url

HOPS_MAX: Final = 5
"""Redirects in a row that a login follows."""
REFUSED_MAX: Final = 100
"""Replies in a row without a session after which a login is given up that brought pages before."""
BY_HAND: Final = "name the page with the form there, or log in by hand with `gossamer login DIR URL`"
EXCLUDED_NAMED_MAX: Final = 5
LOGIN_REQUIRED: Final = "login_required"
Phase = Literal["out", "form", "sent", "landing", "in", "check", "failed"]


class SavedLogin(msgspec.Struct, array_like=True, frozen=True):
    """The stored state of a login that worked."""

    token: str = ""


_decode = msgspec.msgpack.Decoder(SavedLogin).decode
_decode_excluded = msgspec.msgpack.Decoder(list[str]).decode


class FormLogin:
    """One login of the configuration, and its state."""

    def __init__(self, name: str, rule: LoginRule, url: Url, endings: SessionEndings) -> None:
        self.name = name
        self.rule = rule
        self.url = url
        self.endings = endings
        self.phase: Phase = "out"
        self.prerequisite: Prerequisite | None = None
        """The request of this login that is in flight."""
        self.waiting: dict[str, Url] = {}
        """A URL of each host that is parked for this login, by host."""
        self.is_used = False
        """Whether a request of its session is in flight."""
        self.fruitless = 0
        """Consecutive logins that failed or led to no page."""
        self.has_worked = False
        """Whether its sessions have brought pages."""
        self.refused = 0
        """Replies without a session since the last page."""
        self.pause_until = 0.0
        self.reason = ""
        """Why the last login failed."""
        self.is_answered = False
        """Whether another request for the URL that was last answered without a session would change nothing."""
        self.token = ""
        self.content_type = "application/json"
        """Media type of its request with a body; that of a form is known once it was read."""
        self._place = RequestRules({rule.place or url.origin: RequestRule(bearer="x")}, "")
        self._logout = [re.compile(pattern) for pattern in rule.logout]

    def covers(self, url: Url) -> bool:
        return url.site == self.url.site and (rule := self._place.of(url.text)) is not None and bool(rule.headers)

    def is_login_page(self, url: Url) -> bool:
        """Return whether a URL is the login's; parameters may differ that are more, or lead back (`next=/home`)."""
        path, _, query = url.text.partition("?")
        own, _, own_query = self.url.text.partition("?")
        return path == own and _parameters(own_query) <= _parameters(query)

    def excludes(self, url: Url) -> str:
        """Return why a URL of the login's site must never be requested; empty if it may be."""
        if url.site != self.url.site:
            return ""
        if self.is_login_page(url):
            return "is its page"
        if any(pattern.search(url.text) for pattern in self._logout):
            return "ends its session"
        return "is of a kind after which its session had ended" if self.endings.excludes(url) else ""

    def shows_logged_out(self, reply: Reply, body: bytes) -> bool:
        """Return whether a page is one that the server shows only without a session."""
        selector = self.rule.logged_out
        if selector and shows(body, reply.charset, selector=selector):
            return True
        if self.rule.token or b"password" not in body.lower():
            return False
        return form_of(body, reply.charset, reply.url, self.rule.fields) is not None


class FormLogins(VisitMiddleware):
    """All logins of the configuration. `judge` costs 2 µs for a URL that needs no login."""

    name = "login"
    reads_body = True

    def __init__(
        self,
        rules: Mapping[str, LoginRule],
        namer: Namer,
        epochs: Epochs,
        headers: Callable[[Url, Visit | None, float], tuple[tuple[str, str], ...]],
        cookies: Callable[[str, float], Collection[str]],
        pauses_s: tuple[float, float],
        warn: Callable[[str, str, str], None],
        unpark: Callable[[Url, float], None],
    ) -> None:
        """`rules` are by name, with their secrets; `headers` returns those of a request's session, and `cookies` the
        names of a site's; `pauses_s` are the first and the longest wait after a failed login; `warn` gets a feature,
        the name of a login and a sentence, which is empty when the login works or its partition moved; `unpark` lets a
        host go on that waits for a login.
        """
        self._pauses_s = pauses_s
        self._epochs = epochs
        self._namer = namer
        self._headers = headers
        self._cookies = cookies
        self._unpark = unpark
        self._warn = warn
        self._logins: dict[str, FormLogin] = {}
        for name, rule in rules.items():
            url = namer.name(rule.url)
            assert url is not None, "the configuration was checked"
            self._logins[name] = self._load_login(name, rule, url)

    @property
    def names(self) -> frozenset[str]:
        """Names of the logins."""
        return frozenset(self._logins)

    def moved(self, first: int, end: int) -> None:
        """Read logins again from the store. One that was in progress begins again in its partition's shard."""
        for name, login in self._logins.items():
            if first <= login.url.partition < end:
                self._warn(self.name, name, "")
                self._logins[name] = self._load_login(name, login.rule, login.url)

    def _load_login(self, name: str, rule: LoginRule, url: Url) -> FormLogin:
        excluded = self._epochs.get("cookie", _key(url, b"endings", name))
        login = FormLogin(name, rule, url, SessionEndings(_decode_excluded(excluded) if excluded is not None else []))
        if (kept := self._epochs.get("cookie", _key(url, b"login", name))) is not None:
            login.phase = "in"
            login.token = _decode(kept).token
            login.has_worked = True
        return login

    # ---- before a request

    def judge(self, url: Url, now: float) -> Verdict:
        login = self._of(url)
        excluded = self.judge_resource(url, now)
        if login is None or excluded.outcome:
            return excluded
        if login.phase == "failed":
            return Verdict(outcome=LOGIN_REQUIRED, reason=f"login.{login.name}: {login.reason}")
        is_free = login.phase == "in" and not login.is_used
        if is_free and not login.endings.checks and not login.endings.is_on_trial(url):
            return ALLOWED
        if login.phase == "out" and login.pause_until > now:
            return Verdict(wait_until=login.pause_until, reason=f"login.{login.name}: {login.reason}")
        step = login.prerequisite
        if is_free and login.endings.checks:
            step = _check_of(login, url)
        elif is_free or login.phase == "out":
            step = _first(login, url)
        is_lost = step is not None and url.host == step.origin.host
        return Verdict(prerequisite=step if is_lost else None, park=True, owner=self.name)

    def judge_resource(self, url: Url, now: float) -> Verdict:
        """As `judge`, for what the page that uses a session needs: it waits for a login that is under way only."""
        for one in self._logins.values():
            if what := one.excludes(url):
                return Verdict(outcome="excluded", reason=f"login.{one.name}: the URL {what}")
        login = self._of(url)
        return ALLOWED if login is None or login.prerequisite is None else Verdict(park=True, owner=self.name)

    def reserve(self, url: Url, now: float) -> None:
        """Let one visit at a time use a session."""
        login = self._of(url)
        if login is not None:
            login.is_used = True

    def wait(self, url: Url, verdict: Verdict, now: float) -> None:
        login = self._of(url)
        assert login is not None, "only a URL that needs a session waits for one"
        if login.phase == "in" and verdict.prerequisite is not None:
            if login.endings.checks:
                login.phase = "check"
                login.prerequisite = verdict.prerequisite
            else:
                self._end(login)
        if login.phase == "out":
            login.phase = "sent" if login.rule.token else "form"
            login.prerequisite = verdict.prerequisite
        login.waiting[url.host] = url

    def was_lacking(self, names: Collection[str], record: PageRecord) -> bool:
        """Return whether a URL ended for lack of one of these logins."""
        if record.outcome != LOGIN_REQUIRED or (url := self._namer.name(record.url)) is None:
            return False
        login = self._of(url)
        return login is not None and login.name in names

    def covers(self, url: Url) -> bool:
        return self._of(url) is not None

    def token(self, url: Url) -> str:
        """Return the bearer token of a request; empty if it has none."""
        login = self._of(url)
        return login.token if login is not None else ""

    # ---- after a request

    def release(self, url: Url) -> list[Url]:
        login = self._of(url)
        if login is None or not login.is_used:
            return []
        login.is_used = False
        return _release_waiting(login)

    def settle(self, visit: Visit, reply: Reply, now: float) -> Conclusion | None:
        login = self._of(visit.url)
        if login is not None and login.phase == "in":
            login.endings.note_reply(visit.url, now)
        return self._conclusion(visit, self.why_logged_out(visit.url, reply, now), now)

    def settle_document(self, page: ExaminedPage, now: float) -> Conclusion | None:
        url = page.visit.url
        login = self._of(url)
        targets = [one.url for one in page.findings.links if one.link_type == SCRIPT] if login is not None else ()
        why = self.why_logged_out(url, page.reply, now, page.content.body, targets)
        if not why and login is not None and login.phase == "in":
            login.endings.note_page(url, now)
        return self._conclusion(page.visit, why, now)

    def _conclusion(self, visit: Visit, why: str, now: float) -> Conclusion | None:
        """Request a page again after a new login, if `why` says that there was no session."""
        login = self._of(visit.url)
        if not why or login is None:
            return None
        again = None
        if not login.is_answered:
            again = RevisitPlan(visit.url, now, visit.attempt + 1, visit.hops, why)
        return Conclusion(LOGIN_REQUIRED, why, again, was_acted_on=False)

    def why_logged_out(
        self, url: Url, reply: Reply, now: float, body: bytes | None = None, targets: Sequence[str] = ()
    ) -> str:
        """Return why a reply shows that the session has ended; empty if it is content. `body`, and `targets` to which
        scripts would have navigated, are known after it was examined.
        """
        login = self._of(url)
        if login is None or login.phase != "in":
            return ""
        why = self._why_out(login, reply, body, targets)
        if not why:
            if body is not None:
                login.has_worked = True
                login.fruitless = 0
                login.refused = 0
            return ""
        login.refused += 1
        is_kept, login.is_answered = login.endings.note_end(url, now)
        is_fruitless = login.fruitless >= login.rule.attempts_max
        if is_kept or (is_fruitless and login.has_worked and login.refused < REFUSED_MAX):
            return why  # This account may not see these pages: another login would change nothing.
        self._end(login)
        if is_fruitless:
            self._give_up(login, f"{login.fruitless} logins in a row brought no page: {why}")
        return why

    def _why_out(self, login: FormLogin, reply: Reply, body: bytes | None, targets: Sequence[str] = ()) -> str:
        target = redirect_target(reply.url, reply.headers) if 300 <= reply.status < 400 else None
        named = map(self._namer.name, (target, *targets) if target else targets)
        if any(to is not None and login.is_login_page(to) for to in named):
            return f"it redirects to the page of login.{login.name}"
        if reply.status == 401:
            return f"HTTP 401 in spite of login.{login.name}"
        if body is not None and login.shows_logged_out(reply, body):
            return f"it is what login.{login.name} shows without a session"
        return ""

    # ---- the login itself

    def fetch(self, prerequisite: Prerequisite, request: Request, now: float) -> Request:
        headers = self._headers(prerequisite.url, None, now)
        if not prerequisite.form:
            return msgspec.structs.replace(request, headers=headers)
        headers += (("Content-Type", self._logins[prerequisite.subject].content_type),)
        return msgspec.structs.replace(request, headers=headers, method="POST", body=prerequisite.form)

    def answered(
        self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes, now: float
    ) -> Prerequisite | None:
        login = self._logins[prerequisite.subject]
        step = self._step(login, prerequisite, result, body, now)
        if login.prerequisite is None:
            for waiting in _release_waiting(login):
                self._unpark(waiting, now)
        return step

    def _step(
        self, login: FormLogin, prerequisite: Prerequisite, result: Reply | Failure, body: bytes, now: float
    ) -> Prerequisite | None:
        under_way = login.prerequisite
        if under_way is None or prerequisite.url != under_way.url or prerequisite.form != under_way.form:
            return None  # A second result.
        if login.phase == "check":
            self._note_check(login, result, body, now)
            return None
        step = self._next(login, result, body, now)
        if isinstance(step, str):
            self._note_failure(login, step, now)
            return None
        login.prerequisite = step
        if step is None:
            login.endings.begin(now)
        return step

    # ---- inside

    def _of(self, url: Url) -> FormLogin | None:
        for login in self._logins.values():
            if login.covers(url):
                return login
        return None

    def _next(self, login: FormLogin, result: Reply | Failure, body: bytes, now: float) -> Prerequisite | str | None:
        """Return the next request, None after a login that worked, or why it failed."""
        if isinstance(result, Failure):
            return result.error
        target = redirect_target(result.url, result.headers) if 300 <= result.status < 400 else None
        if login.phase == "form":
            return self._go_on(login, target) if target else self._fill_in(login, result, body)
        if login.rule.token:
            return self._take_token(login, result, body)
        if login.phase == "sent" and result.status in REPEATS_THE_BODY:
            return "the form's answer would have it sent elsewhere"
        return self._check(login, result, target, body, now)

    def _fill_in(self, login: FormLogin, reply: Reply, body: bytes) -> Prerequisite | str:
        if not 200 <= reply.status < 300:
            return f"HTTP {reply.status} at {login.url.text}"
        fields = login.rule.fields
        form = form_of(body, reply.charset, reply.url, fields, login.rule.form)
        if form is None:
            return f"no form with the fields {', '.join(fields)} at {login.url.text}"
        if form.method != "post":
            return "its form would put the fields into a URL"
        action = self._namer.name(form.action)
        if action is None or action.origin != login.url.origin:
            return f"its form leads to another origin, {form.action if action is None else action.origin}: {BY_HAND}"
        pairs = [(name, value) for name, value in form.fields if name not in fields]
        login.phase = "sent"
        prerequisite = login.prerequisite
        assert prerequisite is not None
        data, login.content_type = form.encode([*pairs, *fields.items()])
        return msgspec.structs.replace(prerequisite, url=action, hops=0, form=data)

    def _check(
        self, login: FormLogin, reply: Reply, target: str | None, body: bytes, now: float
    ) -> Prerequisite | str | None:
        """Check the answer to the form, or the page that it redirects to."""
        check = login.rule.check
        assert check is not None, "the configuration was checked"
        if check.cookie and check.cookie in self._cookies(login.url.site, now):
            self._note_success(login)
            return None
        if check.redirect and login.phase == "sent" and target and re.search(check.redirect, target):
            self._note_success(login)
            return None
        if not check.redirect and target is not None:
            login.phase = "landing"
            return self._go_on(login, target)
        if (check.text or check.selector) and shows(body, reply.charset, check.text, check.selector):
            self._note_success(login)
            return None
        [(kind, wanted)] = to_table(check).items()
        return f"the check failed: no {kind} {wanted!r} after HTTP {reply.status}"

    def _take_token(self, login: FormLogin, reply: Reply, body: bytes) -> str | None:
        if not 200 <= reply.status < 300:
            return f"HTTP {reply.status} at {login.url.text}"
        try:
            value = msgspec.json.decode(body)
        except msgspec.DecodeError:
            return "the answer is not JSON"
        for name in login.rule.token.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if not isinstance(value, str) or not re.fullmatch(r"[!-~]{1,8000}", value):
            return f"the answer has no token {login.rule.token!r}"
        self._note_success(login, value)
        return None

    def _go_on(self, login: FormLogin, target: str) -> Prerequisite | str:
        url = self._namer.name(target)
        prerequisite = login.prerequisite
        assert prerequisite is not None
        if url is None or url.site != login.url.site:
            return f"it redirects to another site, {target.partition('?')[0]}: {BY_HAND}"
        if prerequisite.hops >= HOPS_MAX:
            return f"it redirects more than {HOPS_MAX} times"
        return msgspec.structs.replace(prerequisite, url=url, hops=prerequisite.hops + 1, form=b"")

    def _note_check(self, login: FormLogin, result: Reply | Failure, body: bytes, now: float) -> None:
        """Note whether the session goes on. An answer of another kind than the page before tells nothing."""
        login.phase = "in"
        login.prerequisite = None
        is_out = None
        if isinstance(result, Reply):
            is_out = bool(self._why_out(login, result, body))
            is_out = is_out if is_out or 200 <= result.status < 300 else None
        if login.endings.note_check(now, is_out=is_out):
            excluded = login.endings.excluded
            self._epochs.put("cookie", _key(login.url, b"endings", login.name), msgspec.msgpack.encode(excluded))
            self._warn(self.name, f"endings of {login.name}", _describe_excluded(login.name, excluded))
        if is_out:
            self._end(login)

    def _note_success(self, login: FormLogin, token: str = "") -> None:
        login.phase = "in"
        login.prerequisite = None
        login.token = token
        login.reason = ""
        login.fruitless += 1
        self._epochs.put("cookie", _key(login.url, b"login", login.name), msgspec.msgpack.encode(SavedLogin(token)))
        self._warn(self.name, login.name, "")

    def _note_failure(self, login: FormLogin, reason: str, now: float) -> None:
        self._end(login)
        login.fruitless += 1
        login.reason = f"{reason} ({login.fruitless} of {login.rule.attempts_max} attempts)"
        first_s, most_s = self._pauses_s
        login.pause_until = now + min(first_s * 2.0 ** min(login.fruitless - 1, 20), most_s)
        if login.fruitless >= login.rule.attempts_max:
            self._give_up(login, login.reason)

    def _end(self, login: FormLogin) -> None:
        login.phase = "out"
        login.prerequisite = None
        login.token = ""
        self._epochs.delete("cookie", _key(login.url, b"login", login.name))

    def _give_up(self, login: FormLogin, reason: str) -> None:
        login.phase = "failed"
        login.reason = reason
        sentence = (
            f"login.{login.name} was given up: {reason}; URLs that need it end as login_required; "
            "correct it, and `gossamer resume DIR` tries these again"
        )
        self._warn(self.name, login.name, sentence)


def _describe_excluded(name: str, kinds: Sequence[str]) -> str:
    """Return a sentence about the kinds of URLs that end the session of a login."""
    more = f" and {len(kinds) - EXCLUDED_NAMED_MAX:,} more" if len(kinds) > EXCLUDED_NAMED_MAX else ""
    named = ", ".join(kinds[:EXCLUDED_NAMED_MAX]) + more
    return f"requests for {named} end the session of login.{name}; URLs of this kind are excluded"


def _check_of(login: FormLogin, origin: Url) -> Prerequisite:
    assert login.endings.good is not None
    return Prerequisite(origin, login.endings.good, owner=FormLogins.name, subject=login.name, is_about_origin=False)


def _first(login: FormLogin, origin: Url) -> Prerequisite:
    rule = login.rule
    form = json.dumps(rule.fields).encode() if rule.token else b""
    return Prerequisite(origin, login.url, owner=FormLogins.name, subject=login.name, form=form, is_about_origin=False)


def _parameters(query: str) -> set[tuple[str, str]]:
    pairs = parse_qsl(query, keep_blank_values=True)
    return {pair for pair in pairs if not pair[1].startswith(("/", "http:", "https:"))}


def _release_waiting(login: FormLogin) -> list[Url]:
    waiting = list(login.waiting.values())
    login.waiting = {}
    return waiting


def _key(url: Url, what: bytes, name: str) -> bytes:
    # No site's name begins like this.
    return url.partition.to_bytes(2) + b"\0" + what + b":" + name.encode()
