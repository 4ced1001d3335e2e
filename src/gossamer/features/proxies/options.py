"""Options of the pool of proxies."""

from typing import Annotated

from gossamer.options import Key, Section
from gossamer.stages.frontier.options import require_host


class ProxiesOptions(Section, frozen=True):
    """A pool of proxies in place of fetch.proxy. All requests to a site go through one of them, while it works."""

    urls: Annotated[
        dict[str, tuple[str, ...]],
        Key(
            "Proxy URLs by a label of yours, such as a country; a URL may be env:NAME or file:PATH. Empty: no pool.",
            basic=True,
            secret=True,
            example='{any = ["http://HOST:PORT"]}',
        ),
    ] = {}
    places: Annotated[
        dict[str, str], Key("Label by host or domain (`.example.org`, `.de`); other hosts take any proxy.", basic=True)
    ] = {}
    retry_s_first: Annotated[
        float, Key("How long a proxy that failed is left out; doubles with each failure in a row.", gt=0)
    ] = 30.0
    retry_s_max: Annotated[float, Key("The longest such time.", gt=0)] = 1800.0

    def __post_init__(self) -> None:
        for label, listed in self.urls.items():
            if not listed:  # Else its sites would have no proxy.
                raise ValueError(f"urls: {label} has no proxy; add one, or leave the label out")
        for place, label in self.places.items():
            require_host(place.removeprefix("."))  # Else the sites meant would take any proxy.
            if label not in self.urls:
                raise ValueError(f"places: {place} has the label {label!r}, and urls has none of it; add it there")
