"""Sections: one model per section of the configuration, one line each in `Config`."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator

HEADER_CHARACTERS_MAX = 400

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel):
    """The shape of a section: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SeedsOptions(Section):
    """Where the crawl begins."""

    urls: tuple[str, ...] = Field((), description="Seeds; those on the command line are added.")
    file: str = Field("", description="A file of seeds, one URL a line, # begins a comment; - is standard input.")


class OutputOptions(Section):
    """Where the crawl goes."""

    directory: str = Field("crawl", min_length=1, description="The crawl's directory; one crawl, one directory.")


class LimitsOptions(Section):
    """When a crawl ends although there is more. A limit that is not set does not exist."""

    max_pages: Count | None = Field(None, description="Pages fetched.")
    max_depth: Annotated[int, Field(ge=0)] | None = Field(None, description="Links from a seed; 0: seeds only.")
    max_time_s: Annotated[Seconds, Field(gt=0)] | None = Field(None, description="Seconds of crawling, over all runs.")
    max_bytes: Count | None = Field(None, description="Bytes received, headers included.")


class OperatorOptions(Section):
    """Who crawls: what server operators see in their logs."""

    contact: str = Field(
        "",
        description="A URL or mail address where you can be reached; public addresses are not visited without it.",
    )
    agent: str = Field(
        "",
        description="The User-Agent header; empty: gossamer/VERSION (+CONTACT).",
    )

    @field_validator("contact")
    @classmethod
    def _one_word(cls, contact: str) -> str:
        if contact and not (contact.isascii() and contact.isprintable() and ("@" in contact or "://" in contact)):
            raise ValueError("a mail address or a URL, in ASCII")
        if " " in contact or len(contact) > HEADER_CHARACTERS_MAX:
            raise ValueError(f"one mail address or URL without spaces, at most {HEADER_CHARACTERS_MAX} characters")
        return contact

    @field_validator("agent")
    @classmethod
    def _one_header(cls, agent: str) -> str:
        if not (agent.isascii() and (not agent or agent.isprintable())) or len(agent) > HEADER_CHARACTERS_MAX:
            raise ValueError(f"printable ASCII, at most {HEADER_CHARACTERS_MAX} characters")
        return agent

    def user_agent(self, version: str) -> str:
        """Return the User-Agent header of this operator."""
        return self.agent or f"gossamer/{version}" + (f" (+{self.contact})" if self.contact else "")


class Delays(NamedTuple):
    """What a preset and the keys beside it come to. Seconds; 0 at once means no gate."""

    delay_s_min: float
    delay_s_max: float
    delay_factor: float
    delay_s_initial: float
    per_host: int
    per_address: int
    address_delay_s: float


# Initial delays hold until five fetch times are known; the address delay is small because much of the web sits
# behind few addresses.
PRESETS: dict[str, Delays] = {
    "polite": Delays(1.0, 60.0, 10.0, 2.0, 1, 1, 0.2),
    "gentle": Delays(15.0, 60.0, 10.0, 15.0, 1, 1, 0.5),
    "broad": Delays(70.0, 600.0, 10.0, 70.0, 1, 1, 0.2),
    "weak": Delays(0.0, 0.0, 0.0, 0.0, 1, 1, 0.0),
    "own": Delays(0.0, 0.0, 0.0, 0.0, 8, 0, 0.0),
}


class PolitenessOptions(Section):
    """How long hosts are left alone. A longer Crawl-delay or Retry-After always wins."""

    preset: Literal["polite", "gentle", "broad", "weak", "own"] = Field(
        "polite", description="What holds where no key below is set."
    )
    delay_s_min: Seconds | None = Field(None, description="Least pause after a request to a host.")
    delay_s_max: Seconds | None = Field(None, description="Longest pause that fetch times may lead to.")
    delay_factor: Seconds | None = Field(None, description="Pause in mean fetch times (of the last five).")
    delay_s_initial: Seconds | None = Field(None, description="Pause until five fetch times are known.")
    per_host: Count | None = Field(None, description="Requests at once to one host.")
    per_address: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Requests at once to one address, whatever the host; 0: no bound."
    )
    address_delay_s: Seconds | None = Field(None, description="Pause after a request to an address, whatever the host.")

    def delays(self) -> Delays:
        """Return the preset with the keys that are set in its place.

        A least delay that is set is the initial one too unless that is set, and lifts the longest one.
        """
        given = {name: value for name in Delays._fields if (value := getattr(self, name)) is not None}
        if self.delay_s_min is not None:
            given.setdefault("delay_s_initial", self.delay_s_min)
        delays = PRESETS[self.preset]._replace(**given)
        return delays._replace(delay_s_max=max(delays.delay_s_min, delays.delay_s_max))


class ScopeOptions(Section):
    """Which links are ours."""

    scope: Literal["prefix", "host", "domain", "any"] = Field("host", description="How far from the seeds.")
    include: tuple[str, ...] = Field((), description="Patterns (RE2) of which a URL must match one, if there are any.")
    exclude: tuple[str, ...] = Field((), description="Patterns (RE2) of which a URL must match none.")


class ResolveOptions(Section):
    """Where hosts are."""

    hosts_file: str = Field("", description="Names and addresses, as in /etc/hosts; asked first.")
    servers: tuple[str, ...] = Field((), description="Name servers, ADDRESS[:PORT]; empty: the system's.")
    allow_private: bool = Field(False, description="Visit private, loopback and link-local addresses.")


class RobotsOptions(Section):
    """What sites ask of us."""

    obey: bool = Field(True, description="Obey robots.txt.")


class CrawlOptions(Section):
    """The crawl as a whole."""

    concurrency: Count = Field(64, description="Requests at once, over all hosts.")
    stage_s_max: Annotated[float, Field(gt=0)] = Field(
        30.0, description="Seconds one stage of one page may take before its process is ended and restarted."
    )


class ProgressOptions(Section):
    """What the command line shows while it crawls."""

    form: Literal["auto", "live", "plain", "json", "quiet"] = Field(
        "auto", description="auto: live on a terminal, plain lines elsewhere."
    )
    interval_s: Annotated[float, Field(gt=0)] = Field(5.0, description="Between plain or JSON lines.")


class Config(Section):
    """The whole configuration. A section is named after the room that reads it."""

    seeds: SeedsOptions = SeedsOptions()
    output: OutputOptions = OutputOptions()
    limits: LimitsOptions = LimitsOptions()
    operator: OperatorOptions = OperatorOptions()
    politeness: PolitenessOptions = PolitenessOptions()
    scope: ScopeOptions = ScopeOptions()
    resolve: ResolveOptions = ResolveOptions()
    robots: RobotsOptions = RobotsOptions()
    crawl: CrawlOptions = CrawlOptions()
    progress: ProgressOptions = ProgressOptions()

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    def origin(self, key: str) -> str:
        """Say where the value of `section.key` came from: `default`, a file with its line, or an option."""
        return self._origins.get(key, "default")

    def value(self, key: str) -> object:
        """Return the value of `section.key`."""
        section, _, name = key.partition(".")
        return getattr(getattr(self, section), name)

    def with_origins(self, origins: dict[str, str]) -> Config:
        """Return the same configuration, its values coming from where `origins` says, by dotted key."""
        copy = self.model_copy()
        copy._origins = dict(origins)  # noqa: SLF001 - our own
        return copy


def sections() -> dict[str, type[BaseModel]]:
    """Return the model of each section, in the order of the file."""
    found: dict[str, type[BaseModel]] = {}
    for name, field in Config.model_fields.items():
        assert isinstance(field.annotation, type)
        assert issubclass(field.annotation, BaseModel)
        found[name] = field.annotation
    return found


def keys() -> list[str]:
    """Return every dotted key there is, in the order of the file."""
    return [f"{section}.{key}" for section, model in sections().items() for key in model.model_fields]
