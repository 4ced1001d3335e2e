"""Zones: the time zone at the end of a written time, in the spellings that Python's parsers do not know."""

import re
from datetime import timedelta, timezone

_ZONE = re.compile(
    r"(:\d\d(?:[.,]\d++)?)\s*+(?:(?:GMT|UTC?|Z)?\s*+([+-])(\d\d?):?(\d\d)?|([A-Za-z]{2,5}))(?:\s*+\([^()]*+\))?\s*+\Z",
    re.ASCII,
)
_HOURS = {
    "AKST": -9, "AKDT": -8, "ART": -3, "ACST": 9.5, "ACDT": 10.5, "AEST": 10, "AEDT": 11, "AWST": 8, "BRT": -3,
    "BST": 1, "CDT": -5, "CET": 1, "CEST": 2, "CLT": -4, "CST": -6, "EDT": -4, "EET": 2, "EEST": 3, "EST": -5, "HKT": 8,
    "HST": -10, "ICT": 7, "IST": 5.5, "JST": 9, "KST": 9, "MDT": -6, "MESZ": 2, "MEST": 2, "MET": 1, "MEZ": 1, "MSD": 4,
    "MSK": 3, "MST": -7, "NDT": -2.5, "NST": -3.5, "NZDT": 13, "NZST": 12, "PDT": -7, "PHT": 8, "PKT": 5, "PST": -8,
    "SAST": 2, "SGT": 8, "TRT": 3, "WEST": 1, "WET": 0, "WIB": 7, "ET": -5, "CT": -6, "MT": -7, "PT": -8,
}  # fmt: skip
"""Of a name with several meanings that of RFC 822, or the most frequent in feeds: British summer, India."""


def without_zone(written: str) -> tuple[str, timezone | None]:
    """Return a short written time without its zone, and the zone; None if it has none or an unknown one."""
    found = _ZONE.search(written)
    if found is None:
        return written, None
    _, sign, hours, minutes, name = found.groups()
    if name is not None and name.upper() not in _HOURS:
        return written, None
    offset = timedelta(hours=_HOURS[name.upper()]) if name else timedelta(hours=int(hours), minutes=int(minutes or 0))
    if offset >= timedelta(days=1):
        return written, None
    return written[: found.end(1)], timezone(-offset if sign == "-" else offset)
