"""Another's hub: flask-websub, served on loopback. Its tasks run in threads, in place of Celery's workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Self

from flask import Flask
from flask_websub.hub import Hub, SQLite3HubStorage
from werkzeug.serving import make_server


class Tasks:
    """What flask-websub uses of Celery: `task` makes a function that can be put off."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def ended(self) -> bool:
        """Whether all that was put off is done, with what it put off itself."""
        return not any(thread.is_alive() for thread in self._threads)

    def task(self, work: Callable[..., Any] | None = None, **options: Any) -> Any:
        if work is None:
            return lambda given: self.task(given, **options)
        repeats_max = options.get("max_retries", 0)

        def run(*arguments: Any) -> None:
            for number in range(repeats_max + 1):
                again = Again(number)
                given = (again, *arguments) if options.get("bind") else arguments
                try:
                    work(*given)
                except RetryError as error:
                    time.sleep(error.args[0])
                else:
                    return

        def delay(*arguments: Any) -> None:
            thread = threading.Thread(target=run, args=arguments, daemon=True)
            thread.start()
            self._threads.append(thread)

        return SimpleNamespace(delay=delay)


class RetryError(Exception):
    """Raised as Celery raises it: the task is to be run once more, so many seconds later."""


class Again:
    """A task as it sees itself."""

    def __init__(self, number: int) -> None:
        self.request = SimpleNamespace(retries=number)

    def retry(self, countdown: float) -> None:
        raise RetryError(countdown)


class FlaskHub:
    """The hub, while it is entered."""

    def __init__(self, directory: Path) -> None:
        self.storage = SQLite3HubStorage(str(directory / "hub.sqlite3"))
        self._tasks = Tasks()
        # As patient as a hub may be: a crawl on a busy machine is not told twice.
        hub = Hub(self.storage, self._tasks, PUBLISH_SUPPORTED=True, BACKOFF_BASE=0.05, REQUEST_TIMEOUT=30)
        app = Flask("hub")
        app.config["PUBLISH_SUPPORTED"] = True
        app.register_blueprint(hub.build_blueprint(url_prefix="/hub"))
        self._server = make_server("127.0.0.1", 0, app, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hub"

    def answered(self) -> bool:
        """Whether everybody who was told has answered."""
        return self._tasks.ended()

    def callbacks(self, topic: str) -> list[tuple[str, str]]:
        """Callback and secret of each subscriber."""
        return list(self.storage.get_callbacks(topic))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
