"""Verbs: queries and commands of a crawl, in one table. Commands, control socket and HTTP follow from it.

Each verb is a line on the control socket and a route below `api/`. Each verb that changes something, and `status`,
`metrics` and `why`, is also a command of `gossamer`. The dashboard uses the others.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from gossamer.model.status import Closing, Status
from gossamer.options import OptionsError, Section, convert

URL_CHARACTERS_MAX = 8_192
AT_ONCE_MAX = 100_000
"""Seeds, hosts or keys in one request; over HTTP its body is bounded too."""

Kind: TypeAlias = Literal["invalid", "refused", "conflict", "missing", "overdue", "busy", "failed"]
"""Why there is no result: invalid request; it cannot be met; not in the crawl's present state; no such crawl; too slow;
too many at once; internal error."""

Text = Annotated[str, Meta(min_length=1, max_length=URL_CHARACTERS_MAX)]
Texts = Annotated[tuple[Text, ...], Meta(min_length=1, max_length=AT_ONCE_MAX)]


class RefusedError(Exception):
    """A request that cannot be met; its text is the answer."""

    kind: Kind = "refused"


class ConflictError(RefusedError):
    """A request that does not fit the crawl's present state: it does not run, or is ending."""

    kind: Kind = "conflict"


class InvalidError(RefusedError):
    """An invalid request: a field is missing, unknown, or of another type."""

    kind: Kind = "invalid"


class MissingError(RefusedError):
    """The object of the request does not exist."""

    kind: Kind = "missing"


class VerbTimeoutError(RefusedError):
    """A request that took too long."""

    kind: Kind = "overdue"


class BusyError(RefusedError):
    """A request that came while too many others were under way."""

    kind: Kind = "busy"


class FailedError(RefusedError):
    """A request that failed because a process of ours died."""

    kind: Kind = "failed"


class VerbRequest(Section, frozen=True, kw_only=True, omit_defaults=True):
    """Arguments of a verb; an unknown field is an error."""


class Nothing(VerbRequest, frozen=True):
    """No fields."""


class StatusOf(VerbRequest, frozen=True):
    """Request for the status."""

    detail: Annotated[bool, Meta(description="Also hosts, rates over time and changed settings.")] = False


class Why(VerbRequest, frozen=True):
    """The URL to explain."""

    url: Annotated[Text, Meta(description="Any address.")]


class HostsOf(VerbRequest, frozen=True):
    """Number of hosts of each kind in the answer."""

    n: Annotated[int, Meta(ge=1, le=100, description="Maximum number of each kind.")] = 20


class RecentOf(VerbRequest, frozen=True):
    """Selection of the last attempts."""

    after: Annotated[int, Meta(ge=0, description="Only those since the one of this number; 0: any.")] = 0
    most: Annotated[int, Meta(ge=1, le=20, description="Maximum number of successful attempts, and of others.")] = 20


class Seed(VerbRequest, frozen=True):
    """More seeds."""

    urls: Annotated[Texts, Meta(description="Absolute http or https addresses; all are taken or none.")]


class ExcludeHosts(VerbRequest, frozen=True):
    """Hosts to leave alone."""

    hosts: Annotated[Texts, Meta(description="Hosts to exclude, as in a URL.")]


class Release(VerbRequest, frozen=True):
    """The trap to release."""

    name: Annotated[Text, Meta(description="A trap as the status names it, or a host, for all of its.")]


class Set(VerbRequest, frozen=True):
    """Keys to change, as values or as texts; with neither, the answer lists the keys."""

    values: Annotated[dict[str, Any], Meta(description="Dotted keys and values; null: as if never set.")] = {}
    assignments: Annotated[
        tuple[Text, ...], Meta(max_length=AT_ONCE_MAX, description="The same as texts: section.key=value, as in TOML.")
    ] = ()


class HostSettings(VerbRequest, frozen=True):
    """Settings of one host; null: as for all hosts."""

    host: Annotated[Text, Meta(description="Its name, as in a URL.")]
    values: Annotated[dict[str, Any], Meta(min_length=1, description="delay_s, per_host, pages.")]


class StopCrawl(VerbRequest, frozen=True):
    """The end of the crawl; it can be resumed."""

    now: Annotated[bool, Meta(description="Do not wait for requests in flight.")] = False
    again: Annotated[bool, Meta(description="Start again afterwards, for example with a new version.")] = False


class ScaleCrawl(VerbRequest, frozen=True):
    """Another number of shards."""

    workers: Annotated[int, Meta(ge=1, le=1024, description="Shards that are to have the partitions.")]


class Scaling(msgspec.Struct, frozen=True):
    """A change of the number of shards."""

    workers: int
    stops: Annotated[bool, Meta(description="Nothing began: this crawl must stop for it (`gossamer scale`).")]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a URL. Further fields are present where more is known."""

    url: str
    state: str
    reason: str
    rule: Annotated[str | None, Meta(description="What decided.")] = None


class HostSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A host in memory; for a crawl that does not run, from its tables."""

    host: str
    limit: Annotated[str, Meta(description="What it waits for, in a word.")]
    queued: int
    requests: int | None
    fetch_s: Annotated[float | None, Meta(description="The mean of its last fetch times.")]
    failures: int
    reason: Annotated[str, Meta(description="Why it waits or is closed.")]
    out: Annotated[int, Meta(description="Requests under way.")] = 0
    sleeps: int = 0
    delay_until: Annotated[float | None, Meta(description="Unix time before which it is not requested.")] = None


class HostLists(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts by category, the most significant first."""

    limits: Annotated[dict[str, int], Meta(description="Active hosts, counted by what limits them.")]
    active: tuple[HostSummary, ...]
    slowest: tuple[HostSummary, ...]
    failing: tuple[HostSummary, ...]
    closed: tuple[Closing, ...]


class CrawlAbout(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl's identity."""

    name: Annotated[str, Meta(description="Its directory's.")]
    mode: str
    workers: int
    version: str
    search: Annotated[bool, Meta(description="It has a full-text index.")]


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A finished attempt. Values from servers are text, and cut if long."""

    number: int
    at: Annotated[float, Meta(description="Unix time at which it began.")]
    url: str
    outcome: str
    status: int | None
    media_type: str
    body_bytes: int
    fetch_s: float
    depth: int
    attempt: int
    title: str
    error: str


class RecentAttempts(msgspec.Struct, frozen=True, kw_only=True):
    """The last attempts, the oldest first."""

    last: Annotated[int, Meta(description="The number of the last one of all.")]
    pages: Annotated[tuple[Attempt, ...], Meta(description="Those that went well.")]
    errors: Annotated[tuple[Attempt, ...], Meta(description="The others.")]
    left_out: Annotated[int, Meta(description="How many there were beside them.")]


class TimelineAnswer(msgspec.Struct, frozen=True):
    """Where the counts stood, over all runs: the last minutes finely, the last month coarsely."""

    points: Annotated[
        tuple[tuple[float, int, int, int, int | None], ...],
        Meta(description="Unix time, pages, attempts, bytes received, and URLs waiting or under way where known."),
    ]


class Metrics(msgspec.Struct, frozen=True):
    """Figures."""

    metrics: Annotated[str, Meta(description="In Prometheus' text format.")]


class Added(msgspec.Struct, frozen=True):
    """Seeds that were taken and committed."""

    added: Annotated[int, Meta(description="New URLs, which are queued.")]
    known: Annotated[int, Meta(description="URLs that the crawl knew; they are not requested again.")]
    rejected: Annotated[int, Meta(description="URLs that a filter rejects, such as `scope.exclude`.")]


class Excluded(msgspec.Struct, frozen=True):
    """Hosts that are left alone from now on; committed."""

    excluded: tuple[str, ...]


class Released(msgspec.Struct, frozen=True):
    """Released traps; committed."""

    released: tuple[str, ...]


class ChangedKey(msgspec.Struct, frozen=True):
    """A key that changed; values as the file has them, empty if it is not set."""

    key: str
    before: str
    after: str


class SettingsChanged(msgspec.Struct, frozen=True, omit_defaults=True):
    """The changes, now durable; or, for an empty request, the keys that may change."""

    changed: tuple[ChangedKey, ...] | msgspec.UnsetType = msgspec.UNSET
    live: Annotated[dict[str, str], Meta(description="Keys with their values.")] | msgspec.UnsetType = msgspec.UNSET


class Checkpoint(msgspec.Struct, frozen=True):
    """A consistent copy."""

    checkpoint: Annotated[str, Meta(description="The directory that holds it.")]


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the result. Title and snippet are untrusted text."""

    url: str
    title: str
    host: str
    language: str
    fetched_at: Annotated[datetime, Meta(description="UTC, as in 2026-01-31T12:00:00.250000Z.")]
    score: float
    snippet: Annotated[str, Meta(description="On one line: each line break and tab is a space.")]
    highlights: Annotated[tuple[tuple[int, int], ...], Meta(description="Characters of the snippet, from and to.")]


class SearchResults(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a query, best first."""

    query: str
    total: Annotated[int, Meta(description="Pages that answer, shown or not.")]
    problems: Annotated[tuple[str, ...], Meta(description="What of the query was left out or taken otherwise.")]
    notice: Annotated[str, Meta(description="What the index lacks, and how to bring it up to date; empty: nothing.")]
    hits: tuple[SearchHit, ...]
    suggestion: Annotated[str, Meta(description="A similar query that finds pages; empty: none is needed or known.")]
    hosts: Annotated[dict[str, int], Meta(description="Pages that answer, by host; the hosts with most of them.")]
    languages: Annotated[dict[str, int], Meta(description="The same by language.")]


class Verb(NamedTuple):
    """A query or a command that a crawl answers."""

    takes: type[VerbRequest]
    gives: type[msgspec.Struct]
    changes: bool
    """It changes the crawl: over HTTP it is a POST that needs the token."""
    says: str
    """Its effect, for help and the OpenAPI description; lists show the first sentence."""
    is_whole: bool = True
    """A change is a command by itself; otherwise a command does more, and is declared with that."""


VERBS: Mapping[str, Verb] = {
    "status": Verb(StatusOf, Status, False, "Return counts, rates and state."),
    "metrics": Verb(Nothing, Metrics, False, "Return the metrics in the text format of Prometheus."),
    "why": Verb(Why, Explanation, False, "Explain the state of one URL."),
    "hosts": Verb(
        HostsOf, HostLists, False, "List hosts that are active, slow, failing or closed, and what limits them."
    ),
    "about": Verb(Nothing, CrawlAbout, False, "Describe the crawl."),
    "recent": Verb(RecentOf, RecentAttempts, False, "List the last attempts. They are kept from the first request on."),
    "course": Verb(Nothing, TimelineAnswer, False, "Return the counts over time."),
    "seed": Verb(Seed, Added, True, "Add seeds to a running crawl: all or none. Returns after the commit."),
    "exclude": Verb(ExcludeHosts, Excluded, True, "Exclude hosts from a running crawl. Returns after the commit."),
    "release": Verb(
        Release,
        Released,
        True,
        "Release a URL pattern that was taken for a trap. The crawl fetches its URLs again, or does so after `resume`.",
    ),
    "set": Verb(
        Set, SettingsChanged, True, "Change keys of a running crawl: all or none. Returns when they are saved."
    ),
    "host": Verb(
        HostSettings, SettingsChanged, True, "Override settings for one host of a running crawl. Returns when saved."
    ),
    "pause": Verb(Nothing, Status, True, "Pause a running crawl. Requests in flight are finished."),
    "unpause": Verb(Nothing, Status, True, "Continue a paused crawl."),
    "checkpoint": Verb(Nothing, Checkpoint, True, "Create a checkpoint of a running crawl and return its path."),
    "scale": Verb(
        ScaleCrawl,
        Scaling,
        True,
        "Change the number of shards of a running crawl, while it crawls. Returns when the change is saved.",
        is_whole=False,
    ),
    "stop": Verb(StopCrawl, Status, True, "Stop a running crawl and save everything. It can be resumed."),
}
"""Declared here, a verb is a line on the control socket, a route below `api/` with its description, and a command where
it changes something; in `gossamer.api.verbs` a method of its name is in `Commands` where it changes something, else in
`Queries`. A crawl of several shards passes it on to each of them, unless `gossamer.api.cluster` answers for all.
"""


def read(name: str, fields: Mapping[str, object], *, from_texts: bool = False) -> VerbRequest:
    """Return a request of its fields; with `from_texts` numbers and truths may be written out, as in a query. Raises
    InvalidError: the fields do not fit; the text names the first one.
    """
    verb = VERBS.get(name)
    if verb is None:
        raise InvalidError(f"no verb {name!r}; there are: {', '.join(VERBS)}")
    return check_request(name, verb.takes, fields, from_texts=from_texts)


def check_request(
    name: str, takes: type[VerbRequest], fields: Mapping[str, object], *, from_texts: bool = False
) -> VerbRequest:
    """Return a request of a type. Raises as `read`."""
    try:
        return convert(takes, fields, from_texts=from_texts)
    except OptionsError as error:
        raise InvalidError(f"{name}: {error}") from error
