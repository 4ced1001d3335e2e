"""Options of rendering."""

from typing import Literal

from pydantic import Field

from gossamer.model.options import Section

ResourceType = Literal["document", "script", "stylesheet", "image", "media", "font", "xhr", "fetch", "other"]
PageRecordName = Literal["view", "thumbnail", "pageinfo"]
BehaviorName = Literal["details", "more", "scroll", "routes"]


class RenderOptions(Section):
    """How pages are rendered where `crawl.render` says so: see docs/how-to/javascript.md."""

    program: str = Field("chromium", min_length=1, description="The browser: a path, or a name to look up in PATH")
    user: str = Field(
        "",
        description="The user that browsers run as where the crawler runs as root; empty: number 65534",
    )
    unsandboxed: bool = Field(
        False,
        description="Run browsers without their sandbox. A page that breaks out of the browser has your rights then",
    )
    cpu_share_max: float = Field(
        0.3,
        gt=0,
        le=1,
        description="Share of the machine's processors that browsers may take with crawl.render = 'auto', on average; "
        "pages beyond it are taken as they were sent",
    )
    browsers: int = Field(2, ge=1, le=4, description="Browsers at once; each renders one page at a time")
    waiting_max: int = Field(
        32, ge=1, description="Pages that wait for a browser; with more no page is fetched until there are fewer"
    )
    memory_bytes_max: int = Field(
        768 << 20, ge=64 << 20, description="Memory of each browser; a page that needs more is not rendered"
    )
    page_s_max: float = Field(
        300.0, gt=0, description="Seconds for a page, with all waiting for the resources that it needs"
    )
    stall_s_max: float = Field(
        10.0, gt=0, description="Processor seconds between two resources of a page, after which it is taken to hang"
    )
    script_s: float = Field(
        5.0, gt=0, description="Seconds that scripts see pass, in virtual time, before the page is taken as complete"
    )
    resource_s_max: float = Field(
        90.0, gt=0, description="Seconds that a resource is waited for; the page is rendered without it then"
    )
    requests_max: int = Field(100, ge=0, description="Resources of a page; further ones are refused")
    resource_bytes_max: int = Field(4 << 20, ge=1, description="Bytes of a resource, decoded; a longer one is refused")
    page_bytes_max: int = Field(
        16 << 20, ge=1, description="Bytes of a page and all its resources, decoded; further ones are refused"
    )
    dom_bytes_max: int = Field(8 << 20, ge=1, description="Bytes of a rendered page; of a longer one nothing is kept")
    resources: tuple[ResourceType, ...] = Field(
        ("document", "script", "xhr", "fetch"),
        description="Types of resources that are requested; the browser gets an empty answer for the others",
    )
    behaviors: tuple[BehaviorName, ...] = Field(
        ("details", "more", "scroll", "routes"),
        description="What is done in a page once it has loaded: `details` opens details and menus, `more` clicks "
        "'load more', `scroll` scrolls to the end, `routes` opens links to hash routes (`#/about`)",
    )
    behavior_files: tuple[str, ...] = Field(
        (), description="Files of JavaScript that run in each page before those; repeated while their value is `true`"
    )
    behavior_steps_max: int = Field(
        30, ge=0, description="Steps of behaviors in a page: after each, scripts see one second pass"
    )
    page_records: tuple[PageRecordName, ...] = Field(
        (),
        description="Records about each rendered page: `view`, a picture of its first 1280 by 1024 pixels; "
        "`thumbnail`, a small one; `pageinfo`, a list of what it is made of",
    )
    cache_bytes_max: int = Field(
        32 << 20, ge=0, description="Memory for resources that may be used again (RFC 9111); 0: none are kept"
    )
    fresh_s: float = Field(
        3_600.0, ge=0, description="How long a resource is used again whose server does not say how long it is fresh"
    )
    attempts_max: int = Field(2, ge=1, description="Attempts to render a page on which a browser hangs or dies")
