"""Raw: elements whose content is text and no markup, and where they end."""

import re

RAW = ("script", "style", "textarea", "xmp", "noembed", "title", "iframe")
RAW_NAMES = frozenset(name.encode() for name in RAW)
SCRIPT_MARKS_MAX = 10_000
"""Beginnings and ends of comments and scripts that are read within one script."""
_SPACE = r"\t\n\f\r "
_ENDS = {name.encode(): re.compile(f"</{name}(?=[{_SPACE}/>])".encode()) for name in RAW}
_SCRIPT_END = re.compile(f"<(?:/script(?=[{_SPACE}/>])|!--)".encode())
_SCRIPT_MARK = re.compile(f"<!--|-->|</?script(?=[{_SPACE}/>])".encode())


def end_tag(lower: bytes, name: bytes, position: int) -> re.Match[bytes] | None:
    """Return the end tag of an element whose content begins here, without what follows its name; None if it has none.

    `lower` is the page in lower case.
    """
    if name != b"script":
        return _ENDS[name].search(lower, position)
    found = _SCRIPT_END.search(lower, position)
    return _end_of_script(lower, found.start()) if found is not None and found[0] == b"<!--" else found


def _end_of_script(lower: bytes, position: int) -> re.Match[bytes] | None:
    """Return the end tag of a script whose comment hides one (HTML, section 13.2.5.17), among few marks. Linear."""
    comment = script = False
    for _ in range(SCRIPT_MARKS_MAX):
        mark = _SCRIPT_MARK.search(lower, position)
        if mark is None:
            return None
        position = mark.end()
        if mark[0] == b"<!--":
            # Its last two characters may be the first of an end.
            comment = True
            position = position - 2
        elif mark[0] == b"-->":
            comment = script = False
        elif mark[0] == b"<script":
            script = comment
        elif not script:
            return mark
        else:
            script = False
    return _ENDS[b"script"].search(lower, position)
