"""Page: one page in a browser, from the document that was fetched to the one that its scripts made of it.

Every request of every target of the page is held (CDP domain Fetch) and answered from here: the page's own document by
what the crawl has fetched, resources by what the crawl gets for them, anything else by a refusal. While a resource is
waited for, virtual time is paused: scripts do not notice how long politeness takes. A page whose requests do not end
gets the rest of its time in slices, and is taken as it is then.
"""

import asyncio
import base64
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

import msgspec

from gossamer.features.render.behaviors import FRAME, STEP, WHOLE, BehaviorFile, script
from gossamer.features.render.browser import Browser, BrowserError, Event, ignore
from gossamer.features.render.options import RenderOptions
from gossamer.features.render.patience import PagePatience
from gossamer.features.render.session import PageSession
from gossamer.model.visits import Failure, Headers, Reply
from gossamer.stages.fetch.http import sendable
from gossamer.world.alarm import WALL_FACTOR
from gossamer.world.loop import wait_at_most

LEADS_TO_MAX: Final = 100
"""Addresses to which scripts would have navigated, of each page."""
HELD_MIN = 100
HELD_FACTOR = 10
"""A page is given up after more requests than 100 and ten times `render.requests_max`, with refused ones."""
DIALOGS_MAX: Final = 1_000
"""Of a page; one that opens them in a loop does nothing else."""
STARVATION_TASKS: Final = 10_000
"""Tasks at one virtual instant after which time goes on."""
BEHAVIOR_S: Final = 1.0
"""Virtual seconds for scripts after each step of behaviors."""
NOTICE_S: Final = 0.05
"""Virtual seconds for observers after frames. Many that hear of two changes at once take the first alone."""
FRAME_S_MAX: Final = 5.0
ERROR_MAX: Final = 200
"""Characters of what a user's behavior throws."""
LOOK_S: Final = 0.25
SHORT_LOOK_S: Final = 0.02
"""Between looks at a page that is waited for, and between slices of its time."""
SLICE_S: Final = 0.25
"""Virtual seconds at once for a page whose requests do not end: requests that begin meanwhile are waited for."""
TAKE_S: Final = 3.0
"""Within which the document of a page is read that exceeded a bound."""
REFUSED_TYPES: Final = frozenset((
    "websocket", "eventsource", "ping", "cspviolationreport", "preflight", "signedexchange", "texttrack", "manifest",
    "prefetch",
))  # fmt: skip
DROPPED: Final = frozenset((
    "alt-svc", "connection", "content-disposition", "content-encoding", "content-length", "keep-alive", "link", "nel",
    "refresh", "report-to", "reporting-endpoints", "service-worker-allowed", "set-cookie", "strict-transport-security",
    "trailer", "transfer-encoding", "upgrade",
))  # fmt: skip
"""Headers of replies that the browser does not get: of the connection, of the coding, or that would make it act."""
PIXEL: Final = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
ANY_ORIGIN: Final = ("Access-Control-Allow-Origin", "*")
TOP: Final = {"x": 0, "y": 0, "width": 1280, "height": 1024}
PICTURES: Final[Mapping[str, Event]] = {
    "view": {"format": "png", "clip": {**TOP, "scale": 1}, "captureBeyondViewport": True},
    "thumbnail": {"format": "jpeg", "quality": 75, "clip": {**TOP, "scale": 0.25}, "captureBeyondViewport": True},
}
EMPTY: Final = {"stylesheet": ("text/css", b""), "image": ("image/gif", PIXEL)}
"""Answers in place of resources of types that are not requested: their pages take them as loaded."""
SENT: Final = frozenset(("accept", "origin", "referer", "x-requested-with"))
"""Headers of a browser's request that the crawl sends: the browser knows types, frames, policies and scripts. Servers
refuse images without a `Referer`, permit other origins by `Origin`, and send data where a script accepts JSON."""
SENT_CHARS_MAX: Final = 4_096
"""Of each of them; as of a Referer in browsers."""
CLICKS_MAX: Final = 100
"""Elements of a page that are clicked to see where they lead."""
BEGIN: Final = script("begin.js")
READ_DOM: Final = WHOLE + script("read.js")
CLICK: Final = WHOLE + script("leads.js").replace("CLICKS_MAX", str(CLICKS_MAX))


class Supply(NamedTuple):
    """Where the resources of a page come from."""

    get: Callable[[str, str, bool, Headers], Awaitable[Reply | Failure]]
    """Returns what a URL brings, requested with a type of resource, the session or not, and headers: a reply, decoded,
    or why there is none."""
    is_delayed: Callable[[], bool] = bool
    """Returns whether the page waits because of the delay of a host."""
    session: PageSession | None = None


class PageError(Exception):
    """A page that is not rendered, by its own doing."""

    def __init__(self, reason: str, text: str) -> None:
        """`reason` is one of those of `PageRow.rendered`; `text` says it to people, in one line."""
        super().__init__(text)
        self.reason = reason


class Dom(msgspec.Struct, frozen=True):
    """A document after its scripts ran."""

    html: str
    url: str
    """Of the document in the end: scripts may have changed it within its origin."""
    leads_to: tuple[str, ...]
    """Where scripts would have navigated, or opened a window."""
    refused: dict[str, int]
    """Requests that were not answered, by reason: an outcome, or one that `_refusal` names."""
    pictures: tuple[tuple[str, bytes], ...] = ()
    """By name, those of `render.page_records`."""
    answers: Mapping[str, tuple[int, str, str]] = {}
    """Status, media type and type of each resource that was brought, by URL."""
    ran: tuple[str, ...] = ()
    """Files of behaviors."""
    errors: tuple[tuple[str, str], ...] = ()
    """Those that failed, and how."""
    cut: str = ""
    """Why the document is taken before its scripts were done; empty where they were."""


class Rendering:
    """One page in one browser, from `document` as fetched and decoded. Make one for each page, and await `dom` once."""

    def __init__(
        self, browser: Browser, document: Reply, options: RenderOptions, supply: Supply, own: tuple[BehaviorFile, ...]
    ) -> None:
        self._browser = browser
        self._own = own
        self._pictures: list[tuple[str, bytes]] = []
        self._answers: dict[str, tuple[int, str, str]] = {}
        self._errors: list[tuple[str, str]] = []
        self._document = document
        self._options = options
        self._get = supply.get
        self._site_session = supply.session
        self._patience = PagePatience(options.settle_s_max, supply.is_delayed)
        self._call_s_max = WALL_FACTOR * options.stall_s_max
        self._cut = ""
        self._session = self._target = ""
        self._is_served = False
        self._held = self._requested = self._dialogs = 0
        self._replied_cpu_s = browser.cpu_s
        self._held_max = max(HELD_MIN, HELD_FACTOR * options.requests_max)
        self._bytes_left = options.page_bytes_max - len(document.body)
        self._refused: Counter[str] = Counter()
        self._leads_to: dict[str, None] = {}
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()
        self._failure: PageError | BrowserError | None = None
        self._dom: Dom | None = None
        """The document once it was read: from then on, clicks say where they lead, and change and request nothing."""

    async def dom(self) -> Dom:
        """Return the rendered page. Raises PageError: it never will be; BrowserError: the browser is to be closed."""
        made = await self._browser.call("Target.createBrowserContext", {"disposeOnDetach": True})
        context = {"browserContextId": made["browserContextId"]}
        self._browser.on_event = self._on_event
        try:
            async with asyncio.timeout(self._options.page_s_max + 2 * TAKE_S), asyncio.TaskGroup() as self._group:
                try:
                    found = await self._outcome(context)
                finally:
                    self._group = None  # A group that ends takes no more tasks.
                for task in self._tasks:
                    task.cancel()
        except TimeoutError:
            found = BrowserError("the browser did not answer in time", "hangs")
        finally:
            self._browser.on_event = ignore
        if isinstance(found, Dom) and isinstance(self._failure, BrowserError):
            await self._browser.close()  # A click hung it after the document was read.
        elif not isinstance(found, BrowserError):
            await self._browser.call("Target.disposeBrowserContext", context)
        if isinstance(found, Exception):
            raise found
        return found

    async def _outcome(self, context: Event) -> Dom | PageError | BrowserError:
        """Render while looking whether the browser still does anything that leads to an end."""
        assert self._group is not None
        work = self._group.create_task(self._work(context))
        browser = self._browser
        limit_s = self._options.stall_s_max
        now = asyncio.get_running_loop().time
        moved_at = now()
        page_s_max = self._options.page_s_max
        ends_at = moved_at + page_s_max
        while not work.done() and self._failure is None:
            await asyncio.wait({work}, timeout=LOOK_S)
            if self._patience.began:
                moved_at = now()
            if browser.ended:
                self._failure = BrowserError(browser.ended, browser.reason)
            elif max(browser.cpu_s - self._replied_cpu_s, (now() - moved_at) / WALL_FACTOR) > limit_s:
                self._failure = BrowserError(f"it kept its browser busy for {limit_s:g} s", "hangs")
            elif now() > ends_at:
                self._failure = PageError("timeout", f"it took longer than render.page_s_max = {page_s_max:g} s")
        if self._failure is not None:
            work.cancel()
            return await self._take(self._failure)
        return work.result()

    async def _take(self, failure: PageError | BrowserError) -> Dom | PageError | BrowserError:
        """Return the document as it is, of a page that exceeded a bound; the failure if the browser sends none."""
        if self._dom is not None:
            return self._dom
        self._cut = str(failure)
        if not self._browser.ended:
            with suppress(PageError, BrowserError, TimeoutError):
                async with asyncio.timeout(TAKE_S):
                    await self._set_time("pause")
                    return await self._read()
        return failure

    async def _work(self, context: Event) -> Dom | PageError | BrowserError:
        try:
            await self._load(context)
            await self._pass(self._options.script_s)
            await self._picture()
            with self._tolerance("crashed"):  # If the page leaves meanwhile, `_read` says so.
                await self._behave()
            dom = self._dom = await self._read()
            return await self._follow(dom) if "links" in self._options.behaviors else dom
        except (PageError, BrowserError) as error:
            return error

    async def _load(self, context: Event) -> None:
        """Load the document, and let virtual time run from then on: before, nothing would load."""
        call = self._browser.call
        # Loads no document: the page is the first in its history, and a script that goes back stays in it.
        self._target = (await call("Target.createTarget", {"url": "javascript:0", **context}))["targetId"]
        attached = await call("Target.attachToTarget", {"targetId": self._target, "flatten": True})
        session = self._session = attached["sessionId"]
        await call("Browser.setDownloadBehavior", {"behavior": "deny", **context})
        for method, params in (
            ("Page.enable", {}), ("Inspector.enable", {}), ("Network.enable", {"maxTotalBufferSize": 0}),
            ("Network.setBypassServiceWorker", {"bypass": True}),
            ("Page.addScriptToEvaluateOnNewDocument", {"source": BEGIN}),
        ):  # fmt: skip
            await call(method, params, session)
        if self._site_session is not None:
            await self._site_session.begin(call, context)
        await self._hold(session)
        await self._jump()
        loaded = await call("Page.navigate", {"url": self._document.url}, session, self._call_s_max)
        if loaded.get("errorText") or loaded.get("isDownload"):
            raise PageError("not_loaded", f"the browser did not load it: {loaded.get('errorText') or 'a download'}")

    async def _jump(self) -> None:
        """Let virtual time be ahead of real time by all the time that the page can have. Frames are drawn by a real
        clock, and not while a page's own is behind it, as after a wait: then observers of what is in view hear nothing.
        """
        asked = {"expression": "Date.now()"}
        date_ms = (await self._browser.call("Runtime.evaluate", asked, self._session))["result"]["value"]
        ahead_s = self._options.page_s_max + 2 * TAKE_S
        await self._set_time("advance", ahead_s, initialVirtualTime=date_ms / 1_000.0 - ahead_s)
        await self._settled.wait()

    async def _pass(self, virtual_s: float) -> None:
        """Let virtual time pass for the scripts; requests under way stop it while the page is waited for."""
        patience = self._patience
        patience.renew()
        if not patience.is_short:
            await self._set_time("pauseIfNetworkFetchesPending", virtual_s)
            while patience.lasts or not (patience.is_parsed and patience.began):
                if await wait_at_most(LOOK_S, self._settled.wait()):
                    return
                patience.pass_time(LOOK_S)
            patience.shorten()
            self._cut = f"its requests did not end within render.settle_s_max = {self._options.settle_s_max:g} s"
        for _ in range(math.ceil(virtual_s / SLICE_S)):
            await self._set_time("advance", SLICE_S)
            await self._settled.wait()
            while patience.lasts:
                await asyncio.sleep(SHORT_LOOK_S)
                patience.pass_time(SHORT_LOOK_S)

    async def _set_time(self, policy: str, virtual_s: float = 0.0, **more: float) -> None:
        self._settled.clear()
        if virtual_s:
            more |= {"budget": 1_000.0 * virtual_s, "maxVirtualTimeTaskStarvationCount": STARVATION_TASKS}
        await self._browser.call(
            "Emulation.setVirtualTimePolicy", {"policy": policy, **more}, self._session, self._call_s_max
        )

    async def _picture(self) -> None:
        """Take pictures, as a visitor sees the page first; none of a page that draws nothing."""
        with self._tolerance("hangs"):
            for name in self._options.page_records:
                if name in PICTURES:
                    answer = await self._browser.call("Page.captureScreenshot", PICTURES[name], self._session)
                    self._pictures.append((name, base64.b64decode(answer["data"])))

    @contextmanager
    def _tolerance(self, reason: str) -> Iterator[None]:
        """Let calls fail for a reason, except for the end of the browser."""
        try:
            yield
        except BrowserError as error:
            if self._browser.ended or error.reason != reason:
                raise

    async def _behave(self) -> None:
        """Do in the page what makes it show more, until that is nothing, or its share of time or memory is used."""
        options = self._options
        now = asyncio.get_running_loop().time
        built_in = f"{STEP}({msgspec.json.encode(options.behaviors).decode()}, {options.dom_bytes_max})"
        own = self._own
        memory_bytes_max = options.memory_bytes_max * 3 // 4
        ends_at = now() + options.page_s_max / 2
        cpu_s_max = self._browser.cpu_s + options.stall_s_max / 2
        if not (own or options.behaviors):
            return
        for _ in range(options.behavior_steps_max):
            if now() > ends_at or self._browser.cpu_s > cpu_s_max or self._browser.memory_bytes > memory_bytes_max:
                break
            for _ in range(2):
                await self._frame(options.dom_bytes_max if "scroll" in options.behaviors else 0)
            ran = bool(own)
            own = tuple([one for one in own if await self._runs_again(one)])
            if not (await self._evaluate(built_in) or ran):
                await self._frame()  # An observer that heard of the last frame may add something with the next one.
                if not await self._evaluate(built_in):
                    return
            await self._frame()
            await self._pass(BEHAVIOR_S - NOTICE_S)
        self._cut = self._cut or "it shows more, but the steps, time or memory for behaviors are used up"

    async def _frame(self, scroll_bytes_max: int = 0) -> None:
        """Let the page draw what has come, and its observers notice; a page that leaves may draw nothing any more."""
        with self._tolerance("hangs"):
            await self._evaluate(f"{FRAME}({scroll_bytes_max})", FRAME_S_MAX)
        await self._pass(NOTICE_S)

    async def _hold(self, session: str) -> None:
        """Hold all requests of a target, and of the targets that it makes."""
        every = {"patterns": [{"urlPattern": "*"}]}
        attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        await self._browser.call("Fetch.enable", every, session)
        await self._browser.call("Target.setAutoAttach", attach, session)

    async def _runs_again(self, behavior: BehaviorFile) -> bool:
        """Run a user's behavior as a script of the page; return whether it is to be run again."""
        asked = {"expression": behavior.code, "returnByValue": True}
        answer = await self._browser.call("Runtime.evaluate", asked, self._session, self._call_s_max)
        if (thrown := answer.get("exceptionDetails")) is not None:
            text = thrown.get("exception", {}).get("description") or thrown.get("text", "")
            self._errors.append((behavior.name, text.partition("\n")[0][:ERROR_MAX]))
        return answer.get("result", {}).get("value") is True

    async def _evaluate(self, expression: str, within_s: float = 0.0) -> Any:
        """Return the value of an expression in a world that the page's scripts cannot change; the same each time."""
        call = self._browser.call
        limit_s = within_s or self._call_s_max
        own = {"frameId": self._target, "worldName": "gossamer"}
        world = (await call("Page.createIsolatedWorld", own, self._session, limit_s))["executionContextId"]
        asked = {"expression": expression, "contextId": world, "returnByValue": True, "awaitPromise": True}
        return (await call("Runtime.evaluate", asked, self._session, limit_s)).get("result", {}).get("value")

    async def _read(self) -> Dom:
        if self._site_session is not None:
            await self._site_session.take()
        most = self._options.dom_bytes_max
        value = await self._evaluate(READ_DOM.replace("BYTES_MAX", str(most)))
        if not isinstance(value, dict):
            raise PageError("not_loaded", "the browser has no document of it")
        if not value["url"].startswith(("http://", "https://")):
            raise PageError("not_loaded", f"it left for {value['url'][:ERROR_MAX]}")
        if value["size"] > most:
            raise PageError("too_large", f"its document has {value['size']:,} bytes; render.dom_bytes_max is {most:,}")
        ran = tuple([one.name for one in self._own])
        return Dom(
            value["html"], value["url"], tuple(self._leads_to), dict(self._refused),
            pictures=tuple(self._pictures), answers=self._answers, ran=ran, errors=tuple(self._errors),
            cut=self._cut,
        )  # fmt: skip

    async def _follow(self, dom: Dom) -> Dom:
        """Click what leads elsewhere by a script, and return the document with the addresses."""
        with self._tolerance("crashed"):
            if await self._evaluate(CLICK):
                await self._pass(BEHAVIOR_S)
        return msgspec.structs.replace(dom, leads_to=tuple(self._leads_to))

    # ---- events

    def _on_event(self, session: str, name: str, params: Event) -> None:
        match name:
            case "Fetch.requestPaused":
                self._held += 1
                if self._held > self._held_max:
                    self._failure = PageError("too_many_requests", f"it made more than {self._held_max:,} requests")
                else:
                    self._do(self._answer(session, params))
            case "Target.attachedToTarget":
                self._do(self._begin_target(params["sessionId"]))
            case "Emulation.virtualTimeBudgetExpired":
                self._settled.set()
            case "Page.domContentEventFired" if session == self._session:
                self._patience.is_parsed = True
            case "Page.windowOpen":
                self._note_lead(params["url"])
            case "Page.frameRequestedNavigation" | "Page.navigatedWithinDocument" if self._dom is not None:
                # A click that follows another at once has its navigation stopped before it is requested.
                if params["frameId"] == self._target and params.get("reason") != "formSubmissionPost":
                    self._note_lead(params["url"].partition("#")[0])
            case "Page.javascriptDialogOpening":
                self._dialogs += 1
                if self._dialogs > DIALOGS_MAX:
                    self._failure = BrowserError(f"it opened more than {DIALOGS_MAX:,} dialogs", "hangs")
                self._do(self._call("Page.handleJavaScriptDialog", {"accept": False}, session))
            case "Inspector.targetCrashed" if session == self._session:
                self._failure = BrowserError("it crashed its browser", "crashed")

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        if self._group is None:
            work.close()
            return
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _note_lead(self, url: str) -> None:
        if len(self._leads_to) < LEADS_TO_MAX and url.startswith(("http://", "https://")):
            self._leads_to[url] = None

    async def _call(self, method: str, params: Event, session: str) -> None:
        """Tell a target something that it may be gone for."""
        with suppress(BrowserError):
            await self._browser.call(method, params, session)

    async def _begin_target(self, session: str) -> None:
        """Let a frame or a worker begin, once its requests are held: those of workers are held with their page's."""
        with suppress(BrowserError):
            await self._hold(session)
        await self._call("Runtime.runIfWaitingForDebugger", {}, session)

    # ---- requests

    async def _answer(self, session: str, params: Event) -> None:
        request = params["request"]
        kind = params["resourceType"].lower()
        number = params["requestId"]
        is_main = kind == "document" and params.get("frameId") == self._target
        if is_main and not self._is_served:
            self._is_served = True
            own = self._document
            await self._fulfil(session, number, own.status, _typed_headers(own), own.body)
            return
        url = request["url"].partition("#")[0]
        if is_main and request["method"] == "GET":
            self._note_lead(url)
        reason = "navigation" if is_main else self._refusal(url, kind, request["method"], request["headers"])
        if reason == "unwanted" and kind in EMPTY:
            media_type, body = EMPTY[kind]
            await self._fulfil(session, number, 200, (("Content-Type", media_type), ANY_ORIGIN), body)
        elif reason:
            await self._refuse(session, number, reason)
        else:
            await self._request(session, number, url, kind, request["headers"])

    def _refusal(self, url: str, kind: str, method: str, headers: Mapping[str, str]) -> str:
        """Return why a request is not made; empty where it may be."""
        wanted = {*self._options.resources}
        # The script of a worker has no type of its own.
        same = {"xhr": "fetch", "fetch": "xhr", "other": "script"}.get(kind, "")
        if self._dom is not None:
            return "late"
        if method != "GET":
            return "method"
        # Icons, streams of events, service workers and what a visitor may want next have no type of their own.
        odd = headers.get("Accept", "").startswith(("image/", "text/event-stream")) and kind != "image"
        if (
            odd
            or not headers.keys().isdisjoint(("Service-Worker", "Sec-Purpose"))
            or kind in REFUSED_TYPES
            or not url.startswith(("http://", "https://"))
        ):
            return "type"
        if kind not in wanted and same not in wanted:
            return "unwanted"
        if self._requested >= self._options.requests_max:
            return "too_many"
        if self._patience.is_over:
            return "late"
        return "too_large" if self._bytes_left <= 0 else ""

    async def _request(self, session: str, number: str, url: str, kind: str, headers: Mapping[str, str]) -> None:
        self._requested += 1
        request = self._requested
        self._patience.begin(request)
        shared = self._site_session
        try:
            reply = await self._get(
                url, kind, shared is not None and await shared.carries(url, headers), sent_of(headers)
            )
            if shared is not None:
                await shared.give()
        finally:
            self._patience.end(request)
            self._replied_cpu_s = self._browser.cpu_s
        if isinstance(reply, Failure):
            if reply.outcome == "timeout":
                self._cut = self._cut or f"it lacks {url[:ERROR_MAX]}: {reply.error}"
            await self._refuse(session, number, reply.outcome)
            return
        self._answers[url] = reply.status, reply.media_type, kind
        self._bytes_left -= len(reply.body)
        if reply.truncated or self._bytes_left < 0:
            await self._refuse(session, number, "too_large")
        else:
            await self._fulfil(session, number, reply.status, reply.headers, reply.body)

    async def _fulfil(self, session: str, number: str, status: int, headers: Headers, body: bytes) -> None:
        answer = {
            "requestId": number,
            "responseCode": status,
            "responseHeaders": [{"name": n, "value": v} for n, v in headers if n.lower() not in DROPPED],
            "body": base64.b64encode(body).decode(),
        }
        await self._call("Fetch.fulfillRequest", answer, session)

    async def _refuse(self, session: str, number: str, reason: str) -> None:
        self._refused[reason] += 1
        # A navigation that is aborted leaves the page as it is; any other error would show one of its own.
        error = "Aborted" if reason == "navigation" else "BlockedByClient"
        await self._call("Fetch.failRequest", {"requestId": number, "errorReason": error}, session)


def _typed_headers(reply: Reply) -> Headers:
    """Return a document's headers with its type by content: with what servers may state it would be a download."""
    stated = (reply.header("content-type") or "").partition(";")[0].strip().lower()
    if stated == reply.media_type or not reply.media_type:
        return reply.headers
    others = tuple(one for one in reply.headers if one[0].lower() != "content-type")
    return (*others, ("Content-Type", reply.media_type))


def sent_of(headers: Mapping[str, str]) -> Headers:
    """Return those headers of a browser's request that the crawl sends."""
    return tuple(
        (name, value)
        for name, value in headers.items()
        if name.lower() in SENT and len(value) <= SENT_CHARS_MAX and sendable(name, value)
    )
