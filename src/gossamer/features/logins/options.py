"""Options of cookies and logins: the sections `cookies` and `login` of the configuration."""

import re
from typing import Annotated

from gossamer.options import Key, NamedSection, Section
from gossamer.stages.fetch.options import where_of


class CookiesOptions(Section, frozen=True):
    """Cookies, kept by site: those of one site never reach another."""

    enabled: Annotated[
        bool,
        Key("Keep the cookies that servers set, and send them back (RFC 6265bis); for logins in any case", basic=True),
    ] = False
    file: Annotated[
        str,
        Key(
            "File of cookies to begin with: in Netscape format (cookies.txt), or the session of a browser as "
            "Playwright records it (its storage state); it is read once. Implies enabled",
            basic=True,
            path="read",
        ),
    ] = ""

    @property
    def is_on(self) -> bool:
        """Whether cookies are kept for every site."""
        return self.enabled or bool(self.file)


def _regular(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return pattern


def _web_url(url: str) -> str:
    if not url.startswith(("https://", "http://")):
        raise ValueError("expected an http or https URL")
    return url


def _place(place: str) -> str:
    if place:
        where_of(place)
    return place


class LoginCheck(Section, frozen=True):
    """Signs that a login worked: one of these."""

    text: Annotated[str, Key("The page after it contains this.")] = ""
    selector: Annotated[str, Key("The page after it has an element that this CSS selector finds.")] = ""
    cookie: Annotated[str, Key("The server set a cookie of this name.")] = ""
    redirect: Annotated[
        str, Key("The form's answer redirects to a URL that matches this regular expression.", check=_regular)
    ] = ""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.text, self.selector, self.cookie, self.redirect))) != 1:
            raise ValueError("expected one of text, selector, cookie, redirect")


class LoginRule(Section, frozen=True, kw_only=True):
    """How a session begins, and how its end is recognized."""

    url: Annotated[
        str,
        Key("Page with the login form; with token the URL that the fields are sent to.", basic=True, check=_web_url),
    ]
    place: Annotated[
        str,
        Key(
            "Where pages need the session, as a place of [request]; empty: the origin of url.", basic=True, check=_place
        ),
    ] = ""
    fields: Annotated[
        dict[str, str],
        Key(
            "Fields to fill in, env:NAME or file:PATH, too; hidden ones are sent in any case.", basic=True, secret=True
        ),
    ]
    form: Annotated[str, Key("CSS selector of the form; empty: the first that has all the fields.", basic=True)] = ""
    check: Annotated[
        LoginCheck | None,
        Key("What shows that the login worked: {text}, {selector}, {cookie} or {redirect}; or give token.", basic=True),
    ] = None
    logged_out: Annotated[
        str,
        Key(
            "CSS selector of an element that only pages without a session have; such a page is requested again "
            "after a new login. So are pages with the login form, redirects to it, and 401.",
            basic=True,
        ),
    ] = ""
    logout: Annotated[
        tuple[str, ...],
        Key(
            "Regular expressions of URLs that end the session; they are excluded.",
            basic=True,
            check=lambda patterns: tuple(map(_regular, patterns)),
        ),
    ] = (r"(?i)\b(log|sign)[-_]?(out|off)\b",)
    token: Annotated[
        str,
        Key("Fields go as JSON; the answer's value of this name (a dot leads inside) is the bearer token.", basic=True),
    ] = ""
    attempts_max: Annotated[
        int, Key("Logins in a row that fail, or bring no page, before URLs that need it end as login_required.", ge=1)
    ] = 3

    def __post_init__(self) -> None:
        if not self.token and self.check is None:
            raise ValueError(
                'expected check, such as check = { text = "Log out" }: without it no login is known to work'
            )
        if self.token and (self.check is not None or self.form):
            raise ValueError("expected no form and no check beside token: the token is the check")


def _require_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise ValueError(f"{name!r} is no name for a login; use letters, digits, - and _")


class LoginOptions(NamedSection, frozen=True):
    """Logins by form or token: each key is a name of yours, its value a table."""

    rules: Annotated[dict[str, LoginRule], Key("By name.", names=_require_name, secret=True)] = {}
