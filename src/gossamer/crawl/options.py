"""Options of the crawl as a whole."""

import difflib
import re
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from gossamer.fetch.options import where_of
from gossamer.model.options import BASIC, BASIC_LIVE, BASIC_SECRET, LIVE, Section

Level = Literal["debug", "info", "warning", "error", "critical", "off"]
PACKAGES = (
    "api",
    "config",
    "control",
    "crawl",
    "fetch",
    "frontier",
    "process",
    "resolve",
    "robots",
    "scope",
    "seeds",
    "watch",
)


class LimitsOptions(Section):
    """Where the crawl ends even though there is more. None: no limit."""

    max_pages: int | None = Field(
        None, ge=1, description="Documents to fetch (outcome `fetched`), never exceeded", json_schema_extra=BASIC_LIVE
    )
    max_time_s: float | None = Field(
        None, gt=0, description="Seconds of crawling, over all runs", json_schema_extra=BASIC_LIVE
    )
    max_bytes: int | None = Field(
        None,
        ge=1,
        description="Bytes received, by robots.txt requests and failures too; what is under way is finished",
        json_schema_extra=BASIC_LIVE,
    )


class WatchOptions(Section):
    """What the crawl watches of itself and of its machine: see docs/how-to/monitoring.md."""

    look_s: float = Field(1.0, ge=0.05, description="Between two looks, in seconds", json_schema_extra=LIVE)
    stall_s: float = Field(
        5.0,
        ge=0.5,
        description="Seconds without progress of the event loop that count as a stall",
        json_schema_extra=LIVE,
    )
    commit_s_max: float = Field(10.0, gt=0, description="A commit that takes longer is stuck", json_schema_extra=LIVE)
    disk_free_bytes_min: int = Field(
        256 << 20,
        ge=0,
        description="With less room on a disk the crawl pauses; with a quarter more than that it goes on",
        json_schema_extra=LIVE,
    )
    memory_share_max: float = Field(
        0.95,
        gt=0,
        description="Share of memory.budget_bytes from which on requests become fewer and commits earlier",
        json_schema_extra=LIVE,
    )
    files_share_max: float = Field(
        0.9, gt=0, le=1, description="Share of the open files allowed from which on requests become fewer",
        json_schema_extra=LIVE,
    )  # fmt: skip
    clock_jump_s_min: float = Field(
        2.0, gt=0, description="A change of the system's clock by more than this is logged", json_schema_extra=LIVE
    )


class LogsOptions(Section):
    """Content and size of `logs/`: see docs/how-to/monitoring.md."""

    level: Level = Field("info", description="Least level that is written", json_schema_extra=BASIC_LIVE)
    levels: dict[str, Level] = Field(
        default_factory=dict,
        description="The same by package: fetch, resolve, robots, scope, process, seeds, watch, config …",
        json_schema_extra=LIVE,
    )
    file_bytes_max: int = Field(
        64 << 20, ge=1 << 10, description="A new file starts before one gets longer than this", json_schema_extra=LIVE
    )
    files_kept: int = Field(3, ge=0, le=100, description="Files before the one that grows", json_schema_extra=LIVE)

    @field_validator("levels")
    @classmethod
    def _known(cls, levels: dict[str, Level]) -> dict[str, Level]:
        for package in levels:
            if package not in PACKAGES:
                near = difflib.get_close_matches(package, PACKAGES, n=1)
                raise ValueError(
                    f"no package {package!r} writes to the log; "
                    + (f"did you mean {near[0]!r}?" if near else f"there are {', '.join(PACKAGES)}")
                )
        return levels


class CrawlOptions(Section):
    """How the shard runs."""

    mode: Literal["batch", "continuous", "offline"] = Field(
        "batch",
        description="batch: each URL once, then the end; continuous: pages again and again, without end; offline: what "
        "is given, links recorded and none followed",
        json_schema_extra=BASIC,
    )
    render: Literal["never", "auto", "always"] = Field(
        "never",
        description="Whether pages are rendered in a browser, so that what their scripts add is found: see [render]. "
        "auto: those that gain by it, as samples show",
        json_schema_extra=BASIC,
    )
    concurrency: int = Field(256, ge=1, le=16_384, description="Requests at once", json_schema_extra=BASIC_LIVE)
    patience_s: float | None = Field(
        600.0,
        ge=0,
        description="The crawl ends when all that is left waits for longer than this, in seconds (Retry-After, "
        "Crawl-delay, failing servers), or than your own longest delay; `resume` continues. none: it always waits, as "
        "a continuous crawl does",
        json_schema_extra=BASIC_LIVE,
    )
    commit_s: float = Field(
        1.0, gt=0, description="Longest time between two commits, in seconds", json_schema_extra=LIVE
    )
    commit_pages: int = Field(
        2_000, ge=1, description="Visits after which a commit comes early", json_schema_extra=LIVE
    )
    epoch_bytes_max: int = Field(
        32 << 20, ge=1 << 20, description="Memory of what waits for a commit, at which the commit comes early"
    )
    stop_s: float = Field(
        10.0, ge=0, description="How long a stop waits for what is in flight, in seconds", json_schema_extra=LIVE
    )
    errors_max: int = Field(
        20, ge=1, description="Internal errors within errors_s that end the crawl", json_schema_extra=LIVE
    )
    module_failures_max: int = Field(
        100,
        ge=0,
        description="Pages on which a processing module may fail from the start of a run without having worked on one; "
        "then the crawl stops and is saved. 0: never",
        json_schema_extra=LIVE,
    )
    errors_s: float = Field(60.0, gt=0, description="See errors_max", json_schema_extra=LIVE)
    request_s_max: float = Field(
        300.0, gt=0, description="Longest wait for a request of any protocol module", json_schema_extra=LIVE
    )
    process_s_max: float = Field(30.0, gt=0, description="Time to decode and process one page before it is suspected")
    process_copies: bool = Field(
        True,
        description="Process exact copies like other pages. false: a page whose content another URL had before, on any "
        "host, is archived and not processed any further: no modules, no links (Mercator); what is found depends on "
        "which copy came first. seen.content_scope is then `shard` unless it is set",
    )
    follow_copies: bool = Field(
        True,
        description="Follow the links of an exact copy on the same host where they lead elsewhere than the original's; "
        "false: none of them, and what is found depends on which copy came first",
    )


class CookiesOptions(Section):
    """Cookies, kept by site: those of one site never reach another."""

    enabled: bool = Field(
        False,
        description="Keep the cookies that servers set, and send them back (RFC 6265bis). The sites of logins do so "
        "without it",
        json_schema_extra=BASIC,
    )
    file: str = Field(
        "",
        description="File of cookies to begin with: in Netscape format (cookies.txt), or the session of a browser as "
        "Playwright records it (its storage state); it is read once. Implies enabled",
        json_schema_extra=BASIC,
    )

    @property
    def wanted(self) -> bool:
        """Cookies are kept for every site."""
        return self.enabled or bool(self.file)


class LoginCheck(Section):
    """What shows that a login worked: one of these."""

    text: str = Field("", description="The page after it contains this.")
    selector: str = Field("", description="The page after it has an element that this CSS selector finds.")
    cookie: str = Field("", description="The server set a cookie of this name.")
    redirect: str = Field("", description="The form's answer redirects to a URL that matches this regular expression.")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(map(bool, (self.text, self.selector, self.cookie, self.redirect))) != 1:
            raise ValueError("expected one of text, selector, cookie, redirect")
        return self

    @field_validator("redirect")
    @classmethod
    def _is_regular(cls, redirect: str) -> str:
        return _regular(redirect)


class LoginRule(Section):
    """How a session begins, and how its end is recognized."""

    url: str = Field(
        description="Page with the login form; with token the URL that the fields are sent to.",
        json_schema_extra=BASIC,
    )
    place: str = Field(
        "",
        description="Where pages need the session, written as the place of a rule for requests, on the site of url; "
        "empty: the origin of url.",
        json_schema_extra=BASIC,
    )
    fields: dict[str, str] = Field(
        description="Fields to fill in; a value may be env:NAME or file:PATH. Hidden fields are sent as the form has "
        "them.",
        json_schema_extra=BASIC_SECRET,
    )
    form: str = Field(
        "", description="CSS selector of the form; empty: the first that has all the fields.", json_schema_extra=BASIC
    )
    check: LoginCheck | None = Field(
        None,
        description="What shows that it worked: {text}, {selector}, {cookie} or {redirect}. Needed without token.",
        json_schema_extra=BASIC,
    )
    logged_out: str = Field(
        "",
        description="CSS selector of what only a page without session has; such a page is requested again after a new "
        "login. So are pages with the login form, redirects to it, and 401.",
        json_schema_extra=BASIC,
    )
    logout: tuple[str, ...] = Field(
        (r"(?i)\b(log|sign)[-_]?(out|off)\b",),
        strict=False,  # A list of the file makes it.
        description="Regular expressions of URLs that end the session; they are excluded.",
        json_schema_extra=BASIC,
    )
    token: str = Field(
        "",
        description="The fields are sent as JSON, and the answer's value of this name (a dot leads inside) is the "
        "bearer token of requests to place.",
        json_schema_extra=BASIC,
    )
    attempts_max: int = Field(
        3,
        ge=1,
        description="Logins in a row that fail, or bring no page, before URLs that need it end as login_required.",
    )

    @field_validator("url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        if not url.startswith(("https://", "http://")):
            raise ValueError("expected an http or https URL")
        return url

    @field_validator("place")
    @classmethod
    def _is_place(cls, place: str) -> str:
        if place:
            where_of(place)
        return place

    @field_validator("logout")
    @classmethod
    def _are_regular(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(_regular, patterns))

    @model_validator(mode="after")
    def _is_checked(self) -> Self:
        if not self.token and self.check is None:
            raise ValueError(
                'expected check, such as check = { text = "Log out" }: without it no login is known to work'
            )
        if self.token and (self.check is not None or self.form):
            raise ValueError("expected no form and no check beside token: the token is the check")
        return self


class LoginsOptions(BaseModel):
    """Logins by form or token: each key is a name of yours, its value a table."""

    model_config = ConfigDict(frozen=True, extra="allow")

    __pydantic_extra__: dict[str, LoginRule]

    @model_validator(mode="before")
    @classmethod
    def _names(cls, table: object) -> object:
        for name in table if isinstance(table, dict) else ():
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                raise ValueError(f"{name!r} is no name for a login; use letters, digits, - and _")
        return table

    @property
    def rules(self) -> dict[str, LoginRule]:
        """By name."""
        return self.__pydantic_extra__


def _regular(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return pattern
