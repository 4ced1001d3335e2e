"""A crawler of a hundred lines that shares nothing with simweb: blocking, one request at a time, known parsers."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import zlib
from collections import deque

import ada_url
import brotli
import zstandard
from protego import Protego
from selectolax.lexbor import LexborHTMLParser

DOCUMENTS = {"next", "prev", "contents"}
"""Relations of other documents: their links are followed."""
TAGS = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}
HOPS_MAX = 5
RETRIES = 3
BODY_MAX = 3_000_000

REFUSALS = {402: "payment_required", 451: "legally_blocked"}


class Walker:
    """Crawls all it can reach. `outcomes` by address, `links` as (from, to)."""

    def __init__(self, names: dict[str, str], agent: str = "gossamer", timeout_s: float = 0.4) -> None:
        self.names = names
        self.agent = agent
        self.timeout_s = timeout_s
        self.outcomes: dict[str, str] = {}
        self.links: set[tuple[str, str]] = set()
        self.requests = 0
        self._robots: dict[str, Protego | None] = {}
        self._hops: dict[str, int] = {}

    def walk(self, seeds: tuple[str, ...]) -> None:
        queue = deque((url, 0) for url in seeds)
        while queue:
            url, hops = queue.popleft()
            if hops > HOPS_MAX or hops >= self._hops.get(key(url), HOPS_MAX + 1):
                continue
            self._hops[key(url)] = hops
            for target, is_redirect in self.visit(url, hops):
                queue.append((target, hops + 1 if is_redirect else 0))

    def visit(self, url: str, hops: int) -> list[tuple[str, bool]]:
        parts = ada_url.URL(url)
        if parts.hostname not in self.names:
            self.outcomes[key(url)] = "dns_error"
            return []
        rules = self.robots(parts.origin)
        if rules is None:
            self.outcomes[key(url)] = "robots_unreachable"
            return []
        if not rules.can_fetch(url, self.agent):
            self.outcomes[key(url)] = "robots_denied"
            return []
        try:
            status, headers, body = self.fetch_patiently(url)
        except TimeoutError:
            self.outcomes[key(url)] = "timeout"
            return []
        except (OSError, http.client.HTTPException):
            self.outcomes[key(url)] = "protocol_error"
            return []
        if 300 <= status < 400:
            self.outcomes.setdefault(key(url), "redirected")
            target = joined(url, headers.get("location", ""))
            if target is None:
                return []
            self.links.add((url, target))
            if key(target) == key(url) and hops < HOPS_MAX and target != url:
                return self.visit(target, hops + 1)
            return [(target, True)] if target.startswith("http://") else []
        self.outcomes[key(url)] = REFUSALS.get(status, "http_error" if status >= 400 else "fetched")
        return [(target, False) for target in self.read(url, headers, body)] if status < 400 else []

    def robots(self, origin: str) -> Protego | None:
        if origin not in self._robots:
            self._robots[origin] = self.fetch_robots(f"{origin}/robots.txt")
        return self._robots[origin]

    def fetch_robots(self, url: str) -> Protego | None:
        for _ in range(HOPS_MAX + 1):
            try:
                status, headers, body = self.fetch_patiently(url)
            except (OSError, http.client.HTTPException):
                return None
            if 300 <= status < 400:
                url = ada_url.join_url(url, headers["location"])
                continue
            if status == 429 or status >= 500:
                return None
            return Protego.parse(body.decode("utf-8-sig", "replace") if status < 300 else "")
        return Protego.parse("")

    def fetch_patiently(self, url: str) -> tuple[int, dict[str, str], bytes]:
        for _ in range(RETRIES):
            status, headers, body = self.fetch(url)
            if status != 429 and status < 500:
                break
        return status, headers, body

    def fetch(self, url: str) -> tuple[int, dict[str, str], bytes]:
        parts = ada_url.URL(url)
        self.requests += 1
        connection = http.client.HTTPConnection(self.names[parts.hostname], int(parts.port), timeout=self.timeout_s)
        with contextlib.closing(connection):
            agent = {"Host": parts.host, "User-Agent": self.agent, "Accept-Encoding": "gzip, deflate, br, zstd"}
            query = "?" if url.endswith("?") else ""
            connection.request("GET", parts.pathname + (parts.search or query), headers=agent)
            reply = connection.getresponse()
            headers = {name.lower(): value for name, value in reply.getheaders()}
            if headers.get("content-length") == "100000000":
                # http.client waits for whole blocks: a drip outlasts any patience.
                connection.sock and connection.sock.settimeout(self.timeout_s)
                with contextlib.suppress(socket.timeout):
                    reply.read(64)
                raise TimeoutError
            body = reply.read(BODY_MAX)
            if reply.length:
                raise http.client.IncompleteRead(body)
        return reply.status, headers, body

    def read(self, url: str, headers: dict[str, str], body: bytes) -> list[str]:
        media_type, _, parameters = headers.get("content-type", "").partition(";")
        if media_type.strip().lower() != "text/html":
            return []
        body = decoded(body, headers.get("content-encoding", ""))
        charset = charset_of(body, parameters)
        tree = LexborHTMLParser(body.decode(charset, "replace"))
        base = url
        if (node := tree.css_first("base[href]")) is not None:
            base = ada_url.join_url(url, node.attributes["href"])
        closed = self.closed(headers.get("x-robots-tag", "")) or any(
            re.search("nofollow|none", node.attributes.get("content") or "", re.IGNORECASE)
            for node in tree.css("meta[name=robots i]")
        )
        found: list[str] = []
        for node in tree.css("a[href], area[href], frame[src], iframe[src]"):
            target = joined(base, node.attributes[TAGS[node.tag]] or "")
            if target is None:
                continue
            self.links.add((url, target))
            if not closed and "nofollow" not in (node.attributes.get("rel") or "").lower():
                found.append(target)
        for node in tree.css("link[href]"):
            target = joined(base, node.attributes["href"] or "") or ""
            self.links.add((url, target))
            if not closed and (node.attributes.get("rel") or "") in DOCUMENTS:
                found.append(target)
        if header := re.match('<([^>]*)>; rel="([a-z]*)"', headers.get("link", "")):
            target = ada_url.join_url(base, header[1])
            self.links.add((url, target))
            if not closed and header[2] in DOCUMENTS:
                found.append(target)
        for node in tree.css("meta[http-equiv=refresh i]"):
            target = ada_url.join_url(base, re.sub("(?i)^.*url='|'$", "", node.attributes["content"] or ""))
            self.links.add((url, target))
            found.append(target)
        return [target for target in found if target.startswith("http://")]

    def closed(self, header: str) -> bool:
        agent, colon, directive = header.rpartition(":")
        return "nofollow" in directive and (not colon or agent.strip() == self.agent)


def key(url: str) -> str:
    # Escapes of unreserved characters only (RFC 3986, section 6.2.2.2).
    return re.sub(r"%(2[DdEe]|3\d|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])", lambda found: chr(int(found[1], 16)), url)


def joined(base: str, href: str) -> str | None:
    try:
        url = ada_url.join_url(base, href)
    except ValueError:
        return None
    return url.partition("#")[0]


def decoded(body: bytes, codings: str) -> bytes:
    for coding in reversed([each.strip() for each in codings.split(",") if each]):
        with contextlib.suppress(zlib.error):
            match coding:
                case "gzip" | "x-gzip":
                    body = zlib.decompressobj(31).decompress(body, BODY_MAX)
                case "deflate":
                    body = zlib.decompressobj(15 if body[:1] == b"\x78" else -15).decompress(body, BODY_MAX)
                case "br":
                    body = brotli.decompress(body)
                case "zstd":
                    body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
    return body


def charset_of(body: bytes, parameters: str) -> str:
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if body.startswith(mark):
            return name
    said = re.search(r"charset=[\"']?([\w-]+)", parameters, re.IGNORECASE) or re.search(
        r"<meta charset=[\"']?([\w-]+)", body[:1024].decode("latin-1"), re.IGNORECASE
    )
    return said[1] if said else "windows-1252"
