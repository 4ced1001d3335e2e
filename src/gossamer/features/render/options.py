"""Options of rendering."""

import shutil
from typing import Annotated, Final, Literal

from gossamer.options import Key, Section

ResourceType = Literal["document", "script", "stylesheet", "image", "media", "font", "xhr", "fetch", "other"]
PageRecordName = Literal["view", "thumbnail", "pageinfo"]
BehaviorName = Literal["details", "more", "scroll", "routes", "links"]

PROGRAMS: Final = ("chromium-headless-shell", "chrome-headless-shell", "chromium")
"""Browsers in the order of the search: a headless shell makes a tab in an eighth of the processor time."""


class RenderOptions(Section, frozen=True):
    """How pages are rendered where `crawl.render` says so: see docs/how-to/javascript.md."""

    program: Annotated[
        str, Key("The browser: a path, or a name in PATH; empty: Chromium's headless shell if installed, else chromium")
    ] = ""
    user: Annotated[str, Key("The user that browsers run as if the crawler runs as root; empty: user ID 65534")] = ""
    unsandboxed: Annotated[
        bool, Key("Run browsers without their sandbox. A page that breaks out of the browser has your rights then")
    ] = False
    cpu_share_max: Annotated[
        float,
        Key(
            "Share of the machine's processors that browsers may take with crawl.render = 'auto', on average; "
            "beyond it, pages are processed as the server sent them",
            gt=0,
            le=1,
        ),
    ] = 0.3
    browsers: Annotated[int, Key("Browsers at once on a machine; each renders one page at a time", ge=1, le=4)] = 2
    waiting_max: Annotated[
        int, Key("Pages that may wait for a browser; while there are more, no page is fetched", ge=1)
    ] = 32
    memory_bytes_max: Annotated[
        int, Key("Memory of each browser; a page that needs more is not rendered", ge=64 << 20)
    ] = 768 << 20
    page_s_max: Annotated[float, Key("Seconds for a page, including the wait for its resources", gt=0)] = 300.0
    stall_s_max: Annotated[
        float, Key("Processor seconds between two resources of a page, after which it is taken to hang", gt=0)
    ] = 10.0
    script_s: Annotated[
        float, Key("Seconds that scripts see pass, in virtual time, before the page is taken as complete", gt=0)
    ] = 5.0
    settle_s_max: Annotated[
        float,
        Key(
            "Seconds to wait for replies after a page was parsed, delays of hosts not included; then it is taken as it "
            "is. A resource that its host does not send within this time is left out",
            gt=0,
        ),
    ] = 4.0
    resource_s_max: Annotated[
        float, Key("Seconds to wait for a resource; after that the page is rendered without it", gt=0)
    ] = 90.0
    requests_max: Annotated[int, Key("Resources of a page; further ones are refused", ge=0)] = 100
    resource_bytes_max: Annotated[int, Key("Bytes of a resource, decoded; a longer one is refused", ge=1)] = 4 << 20
    page_bytes_max: Annotated[
        int, Key("Bytes of a page and all its resources, decoded; further ones are refused", ge=1)
    ] = 16 << 20
    dom_bytes_max: Annotated[int, Key("Bytes of a rendered page; a longer one is not kept", ge=1)] = 8 << 20
    resources: Annotated[
        tuple[ResourceType, ...],
        Key("Types of resources that are requested; the browser gets an empty answer for the others"),
    ] = ("document", "script", "xhr", "fetch")
    behaviors: Annotated[
        tuple[BehaviorName, ...],
        Key(
            "What is done in a page once it has loaded: `details` opens details and menus, `more` clicks 'load more', "
            "`scroll` scrolls to the end, `routes` opens links to hash routes (`#/about`), `links` clicks what leads "
            "to other pages by scripts alone"
        ),
    ] = ("details", "more", "scroll", "routes", "links")
    behavior_files: Annotated[
        tuple[str, ...],
        Key("Files of JavaScript that run in each page before those; repeated while they give `true`", path="read"),
    ] = ()
    behavior_steps_max: Annotated[
        int, Key("Steps of behaviors in a page: after each, scripts see one second pass", ge=0)
    ] = 30
    page_records: Annotated[
        tuple[PageRecordName, ...],
        Key(
            "Records about each rendered page: `view`, a screenshot of its first 1280 by 1024 pixels; `thumbnail`, "
            "a small one; `pageinfo`, a list of its resources"
        ),
    ] = ()
    cache_bytes_max: Annotated[
        int, Key("Memory for resources that may be used again (RFC 9111); 0: none are kept", ge=0)
    ] = 32 << 20
    fresh_s: Annotated[
        float,
        Key("How long a resource is reused if its server does not say for how long it is fresh, in seconds", ge=0),
    ] = 3_600.0
    attempts_max: Annotated[int, Key("Attempts to render a page on which a browser hangs or dies", ge=1)] = 2

    def find_program(self) -> str | None:
        """Return the path of the browser; None if there is none."""
        names = (self.program,) if self.program else PROGRAMS
        return next((found for name in names if (found := shutil.which(name))), None)
