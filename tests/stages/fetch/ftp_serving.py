"""The process behind `ftp_server`: prints its port, writes each command to a file, serves until it is killed."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler, TLS_FTPHandler
from pyftpdlib.servers import FTPServer

options: dict[str, str] = json.loads(sys.argv[1])
log = Path(options["log"]).open("a", encoding="utf-8", errors="surrogateescape", buffering=1)  # noqa: SIM115
logging.disable()


class Logged(FTPHandler):  # type: ignore[misc]
    def pre_process_command(self, line: str, cmd: str, arg: str) -> None:
        log.write(f"{cmd} {arg}\n")
        if cmd == "SIZE" and "sizes" in options:
            self.respond(arg.partition(".")[0])
        elif cmd in ("EPSV", "MDTM") and "refusal" in options:
            self.respond(options["refusal"])
        else:
            super().pre_process_command(line, cmd, arg)


class Implicit(TLS_FTPHandler):  # type: ignore[misc]
    """TLS from the first byte, as ftps:// means it; pyftpdlib itself only knows AUTH TLS."""

    tls_data_required = True

    def handle(self) -> None:
        self.secure_connection(self.get_ssl_context() if hasattr(self, "get_ssl_context") else self.ssl_context)

    def handle_ssl_established(self) -> None:
        super().handle()

    def pre_process_command(self, line: str, cmd: str, arg: str) -> None:
        log.write(f"{cmd} {arg}\n")
        super().pre_process_command(line, cmd, arg)


handler: Any = Logged
if "certificate" in options:
    handler = Implicit
    handler.certfile = options["certificate"]
authorizer = DummyAuthorizer()
if "user" in options:
    authorizer.add_user(options["user"], options["password"], options["root"], perm="elr")
else:
    authorizer.add_anonymous(options["root"])
handler.authorizer = authorizer
handler.banner = options.get("banner", "ready")
handler.auth_failed_timeout = 0
server = FTPServer(("127.0.0.1", 0), handler)
server.max_cons = int(options.get("max_cons", "512"))
print(server.address[1], flush=True)
server.serve_forever()
