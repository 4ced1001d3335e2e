"""Cookies: what servers set and what is sent back (RFC 6265bis), for one site at a time, and files of cookies."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from gossamer.model.decodable import decodable
from gossamer.model.errors import ConfigError
from gossamer.url.site import is_suffix, site_of
from gossamer.url.url import Url, split

COOKIES_MAX: Final = 100
"""Cookies of one site; beyond this, those that were set longest ago are removed."""
COOKIE_BYTES_MAX: Final = 4_096
"""Length of a cookie's name and value (section 5.6)."""
ATTRIBUTE_BYTES_MAX: Final = 1_024
JAR_BYTES_MAX: Final = 64 * 1024
"""Size of all cookies of one site."""
AGE_S_MAX: Final = 400 * 86_400
"""Longest lifetime; longer ones are cut (section 5.5)."""
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_DELIMITER = re.compile(r"[\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\D|$)")
_DAY = re.compile(r"(\d{1,2})(?:\D|$)")
_YEAR = re.compile(r"(\d{2,4})(?:\D|$)")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SAME_SITE: Final[dict[str, Literal["", "strict", "lax", "none"]]] = {"strict": "strict", "lax": "lax", "none": "none"}
_ADDRESS = re.compile(r"\[.*\]|[\d.]+")


class Cookie(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A stored cookie."""

    name: str
    value: str
    domain: str
    path: str
    set_at: float
    expires_at: float = 0.0
    """Wall time; 0: at the end of the session, which lasts as long as the crawl."""
    host_only: bool = True
    secure: bool = False
    http_only: bool = False
    same_site: Literal["", "strict", "lax", "none"] = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """A new cookie replaces the one with the same identity."""
        return self.domain, self.path, self.name

    @property
    def size(self) -> int:
        """Its size in bytes, for the bounds."""
        return len(self.name) + len(self.value) + len(self.domain) + len(self.path)

    def is_over(self, now: float) -> bool:
        """Return whether it has expired."""
        return 0.0 < self.expires_at <= now

    def is_for(self, host: str, path: str, *, secure: bool) -> bool:
        """Return whether it is sent to a host and path (section 5.8.3)."""
        at_home = host == self.domain if self.host_only else within(host, self.domain)
        return at_home and _path_matches(path, self.path) and (secure or not self.secure)


class Jar:
    """The cookies of one site. `changed` is True once they differ from the initial ones."""

    def __init__(self, cookies: Iterable[Cookie] = ()) -> None:
        self._cookies = {cookie.identity: cookie for cookie in cookies}
        self.changed = False

    def __iter__(self) -> Iterator[Cookie]:
        """Yield the cookies, the oldest first."""
        return iter(sorted(self._cookies.values(), key=lambda cookie: cookie.set_at))

    def names(self, now: float) -> set[str]:
        """Return the names of the cookies that have not expired."""
        return {cookie.name for cookie in self._cookies.values() if not cookie.is_over(now)}

    def header(self, url: Url, now: float, *, embedded_elsewhere: bool = False) -> str:
        """Return the Cookie header for a request; empty if there is none. A page is requested as if its address had
        been typed; `embedded_elsewhere` is set for resources of another site's page.
        """
        host = url.host
        path = path_of(url)
        secure = url.scheme == "https"
        sent = [
            cookie
            for cookie in self._cookies.values()
            if cookie.is_for(host, path, secure=secure)
            and not cookie.is_over(now)
            and not (embedded_elsewhere and cookie.same_site != "none")
        ]
        sent.sort(key=lambda cookie: (-len(cookie.path), cookie.set_at))
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in sent)

    def take(self, text: str, url: Url, now: float, *, by_script: bool = False) -> None:
        """Process a Set-Cookie header of a reply from `url`; a header that breaks a rule is ignored (section 5.7). A
        script replaces no cookie that it must not see.
        """
        cookie = parse_cookie(text, url, now)
        if cookie is None or (not cookie.secure and url.scheme != "https" and self._shadows_secure(cookie)):
            return
        before = self._cookies.get(cookie.identity)
        if by_script and before is not None and before.http_only:
            return
        if not cookie.is_over(now):
            self.put(cookie, before)
            self._evict(now)
        elif before is not None:
            del self._cookies[cookie.identity]
        self.changed = self.changed or cookie != before or cookie.is_over(now)

    def put(self, cookie: Cookie, before: Cookie | None = None) -> None:
        """Store a cookie, with the age of `before`, the cookie that it replaces."""
        if before is not None:
            cookie = msgspec.structs.replace(cookie, set_at=before.set_at)
        self._cookies[cookie.identity] = cookie
        self.changed = True

    def _shadows_secure(self, cookie: Cookie) -> bool:
        """Return whether a cookie from an insecure origin would shadow a secure one."""
        return any(
            one.secure
            and one.name == cookie.name
            and (within(one.domain, cookie.domain) or within(cookie.domain, one.domain))
            and _path_matches(cookie.path, one.path)
            for one in self._cookies.values()
        )

    def _evict(self, now: float) -> None:
        for cookie in [one for one in self._cookies.values() if one.is_over(now)]:
            del self._cookies[cookie.identity]
        oldest = iter(list(self))
        while len(self._cookies) > COOKIES_MAX or sum(one.size for one in self._cookies.values()) > JAR_BYTES_MAX:
            del self._cookies[next(oldest).identity]


def parse_cookie(text: str, url: Url, now: float) -> Cookie | None:
    """Return the cookie that a Set-Cookie header sets; None if a rule refuses it."""
    if _CONTROL.search(text):
        return None
    pair, *attributes = text.split(";")
    name, equals, value = pair.partition("=")
    name = name.strip()
    value = value.strip()
    # RFC 6265bis would keep cookies without a name; RFC 6265 and the http-state tests ignore them.
    if not equals or not name or len(name) + len(value) > COOKIE_BYTES_MAX:
        return None
    said = _attributes(attributes)
    secure = "secure" in said
    path = said.get("path", "")
    domain = _domain(said.get("domain", ""), url.host)
    if domain is None or (secure and url.scheme != "https"):
        return None
    same_site = _SAME_SITE.get(said.get("samesite", "").lower(), "")
    if same_site == "none" and not secure:
        return None
    host_only = domain == "" or bool(_ADDRESS.fullmatch(url.host))
    if not path.startswith("/"):
        path = path_of(url).rpartition("/")[0] or "/"
    if not _keeps_its_prefix(name, secure=secure, host_only=host_only and "domain" not in said, path=path):
        return None
    domain = domain or url.host
    expires_at = _expires(said, now)
    return Cookie(name, value, domain, path, now, expires_at, host_only, secure, "httponly" in said, same_site)


def _attributes(parts: Iterable[str]) -> dict[str, str]:
    said: dict[str, str] = {}
    for part in parts:
        name, _, value = part.partition("=")
        value = value.strip()
        if len(value) <= ATTRIBUTE_BYTES_MAX:
            said[name.strip().lower()] = value  # The last value counts.
    return {name: value for name, value in said.items() if not (name == "domain" and not value)}


def _domain(text: str, host: str) -> str | None:
    """Return the domain of a cookie; empty: only its host; None: the host may not set it for this domain."""
    domain = text.removeprefix(".").lower()
    if not domain:
        return ""
    if is_suffix(domain) or "." not in domain:  # A top-level domain that is not listed is a suffix too.
        return "" if domain == host else None
    return domain if within(host, domain) else None


def _keeps_its_prefix(name: str, *, secure: bool, host_only: bool, path: str) -> bool:
    lower = name.lower()
    if lower.startswith("__secure-"):
        return secure
    return not lower.startswith("__host-") or (secure and host_only and path == "/")


def _expires(said: dict[str, str], now: float) -> float:
    age = said.get("max-age", "")
    if re.fullmatch(r"-?\d+", age):
        seconds = int(age[:12])
        return now + min(seconds, AGE_S_MAX) if seconds > 0 else 1.0
    at = cookie_date(said.get("expires", ""))
    return max(1.0, min(at, now + AGE_S_MAX)) if at is not None else 0.0


def cookie_date(text: str) -> float | None:
    """Return the time of an Expires attribute (section 5.1.1); None if it is not valid."""
    time = day = month = year = None
    for token in _DELIMITER.split(text):
        if time is None and (found := _TIME.match(token)):
            time = int(found[1]), int(found[2]), int(found[3])
        elif day is None and (found := _DAY.match(token)):
            day = int(found[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (found := _YEAR.match(token)):
            year = int(found[1])
    if time is None or day is None or month is None or year is None:
        return None
    year += 1900 if 70 <= year <= 99 else 2000 if year <= 69 else 0
    try:
        hour, minute, second = time
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp() if year >= 1601 else None
    except ValueError:
        return None


def within(host: str, domain: str) -> bool:
    """Return whether a host is a domain or below it (section 5.1.3)."""
    return host == domain or (host.endswith("." + domain) and not _ADDRESS.fullmatch(host))


def path_of(url: Url) -> str:
    """Return the path of a URL, without its query."""
    parts = split(url.text)
    return parts.path if parts is not None and parts.path else "/"


def _path_matches(path: str, of_cookie: str) -> bool:
    if path == of_cookie:
        return True
    return path.startswith(of_cookie) and (of_cookie.endswith("/") or path[len(of_cookie)] == "/")


# ---- Netscape files: domain, with subdomains, path, secure, expires, name, value; tabs between them

_HTTP_ONLY: Final = "#HttpOnly_"
NETSCAPE_HEAD: Final = "# Netscape HTTP Cookie File\n"


def of_netscape(text: str, name: str, now: float) -> list[Cookie]:
    """Return the cookies of a file as written by browsers, curl and wget, without expired ones. Raises ConfigError: a
    line is not a cookie; the message has the file and the line number, not the content.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        http_only = line.startswith(_HTTP_ONLY)
        if not line.strip() or (line.startswith("#") and not http_only):
            continue
        fields = line.removeprefix(_HTTP_ONLY).split("\t")
        if len(fields) == 6:
            fields.append("")
        domain = fields[0].removeprefix(".").lower()
        if why := _why_no_cookie(fields, line):
            said = f"{name} line {number}: no cookie: {why}"
            raise ConfigError(f"{said}; save the cookies in Netscape format (cookies.txt)")
        below = fields[1].upper() == "TRUE" and not is_suffix(domain) and not _ADDRESS.fullmatch(domain)
        secure = fields[3].upper() == "TRUE"
        expires_at = max(float(fields[4] or 0), 0.0)  # Some programs write -1, or nothing, for the session's end.
        value = fields[6].encode().decode("latin-1")
        cookie = Cookie(fields[5], value, domain, fields[2] or "/", now, expires_at, not below, secure, http_only)
        _require_prefix(cookie, f"{name} line {number}")
        if not cookie.is_over(now):
            found.append(cookie)
    return found


def _why_no_cookie(fields: list[str], line: str) -> str:
    """Return why a line is no cookie, without its content; empty if it is one."""
    if len(fields) != 7:
        return f"fields between tabs: {len(fields)}, not 7"
    if not re.fullmatch(r"(?:-?\d+(?:\.\d+)?)?", fields[4], re.ASCII):
        return "its fifth field is not a time in seconds"
    if _CONTROL.search(line):
        return "it has control characters"
    return "" if fields[0].strip(".") and fields[5] else "its domain or its name is empty"


def _require_prefix(cookie: Cookie, where: str) -> None:
    """Raise ConfigError for a cookie that no browser keeps, by its prefix (section 4.1.3) or its length."""
    if not _keeps_its_prefix(cookie.name, secure=cookie.secure, host_only=cookie.host_only, path=cookie.path):
        raise ConfigError(f"{where}: __Host- cookies are secure, of one host and of path /, and __Secure- ones secure")
    if len(cookie.name) + len(cookie.value) > COOKIE_BYTES_MAX:
        raise ConfigError(f"{where}: a cookie of more than {COOKIE_BYTES_MAX:,} bytes")


class _StateCookie(msgspec.Struct, rename="camel"):
    name: str
    value: str
    domain: str
    path: str = "/"
    expires: float = -1.0
    expiration_date: float = 0.0
    """As extensions write `expires`."""
    http_only: bool = False
    secure: bool = False
    same_site: str | None = None


@decodable
class _StorageState(msgspec.Struct):
    cookies: list[_StateCookie]


def of_file(text: str, name: str, now: float) -> list[Cookie]:
    """Return the cookies of a file: of Netscape's format, or of a browser session that Playwright recorded (its storage
    state, JSON), or a list of cookies in JSON, as extensions of browsers write it. Raises ConfigError: as
    `of_netscape`; the message does not have the file's content.
    """
    text = text.removeprefix("\ufeff")
    if not text.lstrip().startswith(("{", "[")):
        return of_netscape(text, name, now)
    try:
        state = msgspec.json.decode(text, type=_StorageState | list[_StateCookie])
    except msgspec.DecodeError as error:
        raise ConfigError(f"{name}: no storage state of a browser: {error}; save it with Playwright") from error
    cookies = state if isinstance(state, list) else state.cookies
    made = [_of_state(one, now) for one in cookies if one.name and not _CONTROL.search(one.name + one.value)]
    for number, cookie in enumerate(made, 1):
        _require_prefix(cookie, f"{name} cookie {number}")
    return [cookie for cookie in made if not cookie.is_over(now)]


def _of_state(one: _StateCookie, now: float) -> Cookie:
    domain = one.domain.removeprefix(".").lower()
    below = one.domain.startswith(".") and not is_suffix(domain) and not _ADDRESS.fullmatch(domain)
    expires_at = max(one.expires, one.expiration_date, 0.0)
    return Cookie(
        one.name, one.value.encode().decode("latin-1"), domain, one.path or "/", now, expires_at, not below,
        one.secure, one.http_only, _SAME_SITE.get((one.same_site or "").lower(), ""),
    )  # fmt: skip


def netscape(cookies: Iterable[Cookie]) -> str:
    """Return cookies as a Netscape file, which cannot represent SameSite."""
    cookies = list(cookies)
    lines = [
        "\t".join((
            ("" if cookie.host_only else ".") + cookie.domain, "FALSE" if cookie.host_only else "TRUE", cookie.path,
            "TRUE" if cookie.secure else "FALSE", str(int(cookie.expires_at)), cookie.name, cookie.value,
        ))
        for cookie in cookies
    ]  # fmt: skip
    marks = [_HTTP_ONLY if cookie.http_only else "" for cookie in cookies]
    return NETSCAPE_HEAD + "".join(f"{mark}{line}\n" for mark, line in zip(marks, lines, strict=True))


def site_of_cookie(cookie: Cookie) -> str:
    """Return the site whose jar a cookie belongs in."""
    return site_of(cookie.domain)
