"""Options: the shape of a section of the configuration, and the marks of its keys, which are part of its schema."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo

LIVE: JsonDict = {"live": True}
"""As `json_schema_extra` of a field: `gossamer set` takes its key, and a value holds from the next commit on."""
SECRET: JsonDict = {"secret": True}
"""As `json_schema_extra` of a field: its value may hold credentials. No output shows them."""
BASIC: JsonDict = {"basic": True}
"""As `json_schema_extra` of a field: an operator sets its key. `gossamer init` writes these alone; other keys are for
experts.
"""
BASIC_LIVE: JsonDict = {**BASIC, **LIVE}
BASIC_SECRET: JsonDict = {**BASIC, **SECRET}


def is_marked(field: FieldInfo, mark: Literal["live", "secret", "basic"]) -> bool:
    """Say whether a key bears a mark."""
    return isinstance(field.json_schema_extra, Mapping) and bool(field.json_schema_extra.get(mark))


class Section(BaseModel):
    """The shape of a section and of a rule in one: frozen; unknown keys, infinity and NaN are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _web_address(text: str) -> str:
    if text and not text.startswith(("https://", "http://")):
        raise ValueError("expected an http or https address")
    return text.rstrip("/")


WebAddress = Annotated[str, AfterValidator(_web_address)]
"""An http or https address, without the slash at its end; empty: none."""
