"""A bucket of S3 on loopback: moto's server in a process of its own, and a wire to it that can be cut or slowed."""

from __future__ import annotations

import selectors
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from types import TracebackType
from typing import Any, Self
from urllib.request import Request, urlopen

import boto3
from botocore.config import Config

SERVE = """
import logging, sys, warnings
warnings.simplefilter("ignore")
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
NAME = "archive"
KEYS = {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "something"}
PIECE = 65_536


class Bucket:
    """Serves the bucket `archive` while the context lasts. It keeps every version of every object."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        """`host` is the address of this machine at which the wire begins."""
        self._host = host
        self.wire: Wire

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.strip():
            raise RuntimeError(f"moto does not start: {self._process.communicate()[1].decode()}")
        self.port = int(line)
        self.client: Any = boto3.client(
            "s3", endpoint_url=f"http://127.0.0.1:{self.port}", region_name="us-east-1",
            aws_access_key_id="someone", aws_secret_access_key="something",
            config=Config(s3={"addressing_style": "path"}, proxies={}),
        )  # fmt: skip
        self.client.create_bucket(Bucket=NAME)
        self.client.put_bucket_versioning(Bucket=NAME, VersioningConfiguration={"Status": "Enabled"})
        self.wire = Wire(self.port, self._host)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wire.close()
        self.client.close()
        self._process.kill()
        self._process.communicate()

    @property
    def options(self) -> dict[str, str]:
        """What `archive.store_options` is told to come here, through the wire."""
        return {"endpoint": f"http://{self._host}:{self.wire.port}", "region": "us-east-1", "allow_http": "true"}

    @property
    def sets(self) -> tuple[str, ...]:
        """The same as settings of a crawl, with short pauses."""
        options = ", ".join(f"{name} = '{value}'" for name, value in self.options.items())
        return (
            f"archive.store='s3://{NAME}/crawls/one'",
            f"archive.store_options={{{options}}}",
            "archive.store_retry_s_first=0.05",
            "archive.store_retry_s_max=0.2",
        )

    def objects(self, prefix: str = "crawls/one/") -> dict[str, bytes]:
        """Return all that can be read, by name below the prefix."""
        listed = self.client.list_objects_v2(Bucket=NAME, Prefix=prefix).get("Contents", [])
        return {
            one["Key"].removeprefix(prefix): self.client.get_object(Bucket=NAME, Key=one["Key"])["Body"].read()
            for one in listed
        }

    def written(self, prefix: str = "crawls/one/") -> Counter[str]:
        """Return how often each object was written."""
        versions = self.client.list_object_versions(Bucket=NAME, Prefix=prefix).get("Versions", [])
        return Counter(one["Key"].removeprefix(prefix) for one in versions)

    def refuse_strangers(self) -> None:
        """From now on whoever is not known is refused, and nobody is known."""
        self._requests_unchecked(0)

    def let_all_in(self) -> None:
        """Undo `refuse_strangers`."""
        self._requests_unchecked(1_000_000)

    def _requests_unchecked(self, count: int) -> None:
        address = f"http://127.0.0.1:{self.port}/moto-api/reset-auth"
        asked = Request(address, str(count).encode(), {"Content-Type": "text/plain"}, method="POST")
        with urlopen(asked) as answer:
            assert answer.status == 200


class Wire:
    """Passes bytes on, both ways. `bytes_s` slows what goes to the server; `cut` and `mend`; `spoil` changes a byte."""

    def __init__(self, target: int, host: str = "127.0.0.1") -> None:
        self._target = target
        self._listener = socket.create_server((host, 0))
        self.port: int = self._listener.getsockname()[1]
        self.bytes_s = 0.0
        self.spoil: tuple[bytes, bytes] | None = None
        self.passed = 0
        """Bytes that went to the server."""
        self.is_cut = False
        self._pairs: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """End all connections, and every new one at once."""
        self.is_cut = True
        for one in list(self._pairs):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self.is_cut = False

    def forget(self) -> None:
        """Drop what is under way, as when whoever sent it has died: nothing of it arrives late."""
        self.cut()
        self.mend()

    def close(self) -> None:
        self.cut()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.is_cut:
                client.close()
                continue
            threading.Thread(target=self._join, args=(client,), daemon=True).start()

    def _join(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target)) as server, suppress(OSError):
            self._pairs |= {client, server}
            try:
                self._pump(client, server)
            finally:
                self._pairs -= {client, server}

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    source, target = key.fileobj, key.data
                    assert isinstance(source, socket.socket)
                    data = source.recv(PIECE)
                    if not data:
                        return
                    if source is client:
                        data = self._on_its_way(data)
                    target.sendall(data)

    def _on_its_way(self, data: bytes) -> bytes:
        self.passed += len(data)
        if self.bytes_s:
            time.sleep(len(data) / self.bytes_s)
        if self.spoil is not None:
            data = data.replace(*self.spoil)
        return data
