"""Object store: a bucket at S3, Google or Azure, or a directory elsewhere, by obstore.

Objects appear whole or not at all, also those sent in parts: obstore's writes are atomic on every kind of store.
"""

import asyncio
import hashlib
import os
import re
import tomllib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from math import ceil
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

import msgspec
import obstore
from obstore import exceptions
from obstore.store import HTTPStore, LocalStore, MemoryStore, from_url

from gossamer.model.errors import ConfigError, StoreError
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.world.files import publish
from gossamer.world.inputs import read_input

PARTS_MAX = 9_000
"""S3 takes 10,000 parts an object."""
PARTS_AT_ONCE = 2
READ_BYTES = 1 << 20
ERROR_CHARACTERS_MAX = 300
_ENDPOINTS = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
NO_CREDENTIALS = "169.254.169.254"
"""Where clouds give credentials to their own machines: requested when there are no others."""
_CLIENT_KEYS = frozenset({
    "allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only", "pool_idle_timeout",
    "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes", "proxy_url", "read_timeout",
    "root_certificate", "timeout", "user_agent",
})  # fmt: skip
_SECRET = re.compile(r"secret|token|key|password")
_NOISE = re.compile(r"^Generic \w+ error: | in [\d.]+[mµn]?s(?=[ ,])|, after \d+ retries(, \w++: \w++)*")
_NO_SECRET = ("_id", "_file", "_enabled", "_url")


class Fixity(msgspec.Struct, frozen=True):
    """Length and checksums by which a copy is recognized as equal."""

    length: int
    part_bytes: int
    """Size of the parts in which a longer file is sent."""
    sha256: str
    tag: str
    """The ETag that S3 gives to objects that it encrypts with no key of the customer's: MD5, or MD5 of the parts'."""


class ObjectStore:
    """Copies files to one place and verifies the copies. At most `PARTS_AT_ONCE` parts of a file are in memory."""

    def __init__(self, options: ArchiveOptions) -> None:
        """Open the store; no request yet. Raises ConfigError: the URL, an option or the file of secrets is no good."""
        self.url = options.store.rstrip("/")
        self._options = options
        self._store = _open_store(options)

    async def copy(self, source: Path | bytes, name: str, *, overwrite: bool = False) -> str:
        """Copy a file, unless it is there already, verify the copy, and return its SHA-256 in hexadecimal.

        An object with other content is replaced only with `overwrite`: it is another crawl's. Raises StoreError: that
        failed, or the copy could not be verified.
        """
        limit_s = self._options.store_request_s_max
        try:
            async with asyncio.timeout(limit_s):
                there = await self._look(name)  # First: a store that is away costs no digest.
            fixity = await self._fixity(source, name)
            limit_s *= 2 + fixity.length // fixity.part_bytes
            async with asyncio.timeout(limit_s):
                if there is not None and await self._equal(name, there, fixity):
                    return fixity.sha256
                if there is not None and not overwrite:
                    raise StoreError(
                        f"{self.url}/{name} is there with other content: another crawl's; use another prefix "
                        "(--set archive.store=…)",
                        of_file=True,
                    )
                await self._put(source, name, fixity)
                arrived = await self._look(name, refusal_counts=True)
                if arrived is None or not await self._equal(name, arrived, fixity):
                    raise StoreError(f"{self.url}/{name} is not what was sent")
        except TimeoutError as error:
            raise StoreError(f"no end of {name} within {limit_s:.0f} s") from error
        except (exceptions.BaseError, OSError, ValueError) as error:
            raise _store_error(error) from error
        return fixity.sha256

    async def read(self, name: str) -> bytes | None:
        """Return a small object, or None if there is none. Raises StoreError."""
        async with self._request():
            try:
                result = await obstore.get_async(self._store, name)
                return bytes(await result.bytes_async())
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
        return None

    async def write(self, name: str, data: bytes) -> None:
        """Write or replace a small object, atomically. Raises StoreError."""
        async with self._request():
            await obstore.put_async(self._store, name, data)

    async def fetch(self, name: str, target: Path, sha256: str) -> None:
        """Copy an object to disk and check its digest. Raises StoreError: there is no such object, or its content is
        another; OSError: the disk is full.
        """
        aside = target.with_name(target.name + ".part")
        target.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        try:
            result = await obstore.get_async(self._store, name)
            with aside.open("wb") as file:
                async for piece in result.stream(min_chunk_size=READ_BYTES):
                    digest.update(piece)
                    file.write(piece)
        except FileNotFoundError as error:
            raise StoreError(f"{self.url}/{name} is not there", lasting=True) from error
        except (exceptions.BaseError, ValueError) as error:
            raise _store_error(error) from error
        if digest.hexdigest() != sha256:
            raise StoreError(f"{self.url}/{name} is not what was saved", lasting=True)
        publish(aside, target)

    async def has(self, name: str, length: int, sha256: str = "") -> bool:
        """Return whether there is an object of a length; it is read if a SHA-256 is given. Raises StoreError."""
        with _store_errors(), suppress(FileNotFoundError, exceptions.PermissionDeniedError):
            if sha256:
                return await self._digest(name) == sha256
            return bool((await obstore.head_async(self._store, name))["size"] == length)
        return False

    def read_range(self, name: str, start: int, length: int) -> bytes | None:
        """Return a part of an object, or None if there is no such object. Blocks. Raises StoreError."""
        with _store_errors(), suppress(FileNotFoundError):
            return bytes(obstore.get_range(self._store, name, start=start, length=length))
        return None

    def sizes(self, name: str) -> dict[str, int]:
        """Return the length of an object, or of all objects below a name. Blocks. Raises StoreError."""
        with _store_errors():
            if name:
                with suppress(FileNotFoundError):
                    return {name: obstore.head(self._store, name)["size"]}
            return {one["path"]: one["size"] for page in obstore.list(self._store, name or None) for one in page}

    async def names(self) -> list[str]:
        """Return the names of all objects. Raises StoreError."""
        async with self._request():
            return [one["path"] async for page in obstore.list(self._store) for one in page]

    async def remove(self, names: Sequence[str]) -> None:
        """Remove objects; those that are gone already are no error. Raises StoreError."""
        async with self._request():
            with suppress(FileNotFoundError):
                await obstore.delete_async(self._store, list(names))

    @asynccontextmanager
    async def _request(self) -> AsyncIterator[None]:
        """Bound a request by its time limit, and raise its errors as StoreError."""
        with _store_errors():
            async with asyncio.timeout(self._options.store_request_s_max):
                yield

    async def _fixity(self, source: Path | bytes, name: str) -> Fixity:
        try:
            return await asyncio.to_thread(fixity_of, source, self._options.store_part_bytes)
        except OSError as error:
            raise StoreError(f"{name} cannot be read: {error.strerror}", of_file=True) from error

    async def _put(self, source: Path | bytes, name: str, fixity: Fixity) -> None:
        in_parts = fixity.length > fixity.part_bytes
        await obstore.put_async(
            self._store, name, source, use_multipart=in_parts, chunk_size=fixity.part_bytes,
            max_concurrency=PARTS_AT_ONCE,
        )  # fmt: skip

    async def _look(self, name: str, *, refusal_counts: bool = False) -> Any:
        """Return the store's metadata of an object, or None.

        Writers without permission to list get a refusal instead of the answer that there is no such object.
        """
        try:
            return await obstore.head_async(self._store, name)
        except FileNotFoundError:
            return None
        except exceptions.PermissionDeniedError:
            if refusal_counts:
                raise
            return None

    async def _equal(self, name: str, there: Any, fixity: Fixity) -> bool:
        if there["size"] != fixity.length:
            return False
        verify = self._options.store_verify
        tag = (there["e_tag"] or "").strip('"').lower()
        if verify == "size" or (verify == "auto" and tag == fixity.tag):
            return True
        # A tag of another kind, or of other parts, or of what a customer's key encrypted: only the content tells.
        return await self._digest(name) == fixity.sha256

    async def _digest(self, name: str) -> str:
        digest = hashlib.sha256()
        result = await obstore.get_async(self._store, name)
        async for piece in result.stream(min_chunk_size=READ_BYTES):
            digest.update(piece)
        return digest.hexdigest()


def fixity_of(source: Path | bytes, part_bytes_min: int) -> Fixity:
    """Return the fixity of a file or bytes. Blocks; about 2 ms a MB."""
    held = len(source) if isinstance(source, bytes) else source.stat().st_size
    part_bytes = max(part_bytes_min, ceil(held / PARTS_MAX))
    sha256 = hashlib.sha256()
    parts = []
    length = 0
    for part in _parts(source, part_bytes):
        md5 = hashlib.md5(usedforsecurity=False)
        for piece in part:
            md5.update(piece)
            sha256.update(piece)
            length += len(piece)
        parts.append(md5.digest())
    tag = hashlib.md5(b"".join(parts), usedforsecurity=False).hexdigest() + f"-{len(parts)}"
    if length <= part_bytes:
        tag = parts[0].hex() if parts else hashlib.md5(b"", usedforsecurity=False).hexdigest()
    return Fixity(length, part_bytes, sha256.hexdigest(), tag)


def _parts(source: Path | bytes, part_bytes: int) -> Iterator[Iterable[bytes]]:
    """Yield the pieces of each part; read one part to its end before the next."""
    if isinstance(source, bytes):
        for at in range(0, len(source), part_bytes):
            yield [source[at : at + part_bytes]]
        return
    with source.open("rb") as file:
        while piece := file.read(min(READ_BYTES, part_bytes)):
            yield _rest_of_part(file, piece, part_bytes)


def _rest_of_part(file: BinaryIO, piece: bytes, part_bytes: int) -> Iterator[bytes]:
    left = part_bytes
    while piece:
        yield piece
        left -= len(piece)
        piece = file.read(min(READ_BYTES, left))


def _open_store(options: ArchiveOptions) -> Any:
    url = options.store
    given = dict(options.store_options)
    if "?" in url or "@" in url.partition("://")[2].partition("/")[0]:
        raise ConfigError("archive.store: no credentials in the URL; archive.store_secrets_file names a file for them")
    if "://" not in url:
        folder = Path(url).absolute().as_uri()
        raise ConfigError(f"archive.store: {url} has no scheme; write s3://, gs://, az://, or {folder} for a folder")
    for key in given:
        if _SECRET.search(key.lower()) and not key.lower().endswith(_NO_SECRET):
            raise ConfigError(
                f"archive.store_options: {key} would be archived with the configuration; put it into the environment, "
                "or into the file that archive.store_secrets_file names"
            )
    _require_endpoints(given)
    if url.startswith("file://") and not url.startswith("file:///"):
        raise ConfigError(f"archive.store: {url} has no absolute path; write file:///PATH, with three slashes")
    given |= _secrets(options.store_secrets_file)
    client: Any = {key: value for key, value in given.items() if key in _CLIENT_KEYS}
    client.setdefault("timeout", timedelta(seconds=options.store_request_s_max))
    if "AWS_ALLOW_HTTP" in os.environ:  # Read by obstore only where no client options are given.
        client.setdefault("allow_http", os.environ["AWS_ALLOW_HTTP"])
    config: Any = {key: value for key, value in given.items() if key not in _CLIENT_KEYS}
    retry: Any = {"max_retries": 1, "retry_timeout": timedelta(seconds=options.store_request_s_max)}
    try:
        if url.startswith("file://"):
            Path(unquote(urlsplit(url).path)).mkdir(parents=True, exist_ok=True)
            return from_url(url)
        store = from_url(url, config=config, client_options=client, retry_config=retry)
    except (exceptions.BaseError, OSError, ValueError, TypeError) as error:
        raise ConfigError(f"archive.store: {url}: {_one_line(error)}") from error
    if isinstance(store, HTTPStore | LocalStore | MemoryStore):
        raise ConfigError(f"archive.store: {url} is no object store; name one as s3://, gs://, az:// or file://")
    return store


def _require_endpoints(given: Mapping[str, str]) -> None:
    may_http = any(key.lower().endswith("allow_http") for key in (*given, *os.environ))
    named = {name: os.environ[name] for name in _ENDPOINTS if name in os.environ}
    own = {f"archive.store_options.{key}": text for key, text in given.items() if key.endswith("endpoint")}
    for key, text in (own or named).items():
        if not text.startswith(("http://", "https://")):
            raise ConfigError(f"{key}: {text} has no scheme; write https://{text}, or http://")
        if text.startswith("http://") and not may_http:
            raise ConfigError(
                f'{key}: http:// needs allow_http = "true" in archive.store_options, or AWS_ALLOW_HTTP=true'
            )


def _secrets(path: str) -> dict[str, str]:
    if not path:
        return {}
    try:
        found = tomllib.loads(read_input(Path(path)).decode("utf-8"))
    except OSError as error:
        raise ConfigError(
            f"archive.store_secrets_file: {path} cannot be read: {error.strerror}; name a file that you can read"
        ) from error
    except ValueError as error:
        raise ConfigError(f"archive.store_secrets_file: {path} is not TOML: {error}") from error
    if not all(isinstance(value, str) for value in found.values()):
        raise ConfigError(f'archive.store_secrets_file: {path}: expected lines such as secret_access_key = "…"')
    return found


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except (exceptions.BaseError, OSError, ValueError, TimeoutError) as error:
        raise _store_error(error) from error


def _store_error(error: Exception) -> StoreError:
    text = _one_line(error)
    if NO_CREDENTIALS in text:
        names = "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY (of Google, GOOGLE_APPLICATION_CREDENTIALS)"
        return StoreError(f"no credentials: {names} are not set", lasting=True)
    refused = isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError)
    return StoreError(text, lasting=isinstance(error, FileNotFoundError), refused=refused)


def _one_line(error: Exception) -> str:
    """Return a store's error in one line: its own message if it sent one."""
    text = str(error).partition("\n\nDebug source")[0]
    code, message = (re.search(rf"<{name}>([^<]*)</{name}>", text) for name in ("Code", "Message"))
    if code and message:
        text = f"{message[1].strip().rstrip('.')} ({code[1]})"
    return " ".join(_NOISE.sub("", text).split())[:ERROR_CHARACTERS_MAX]
