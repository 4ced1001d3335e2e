"""Reference: the page about every key, made from the models so that it cannot drift."""

from __future__ import annotations

from pydantic.fields import FieldInfo

from gossamer.config.flags import FLAGS
from gossamer.config.sections import Config, sections
from gossamer.config.toml import summary, written

HEAD = """\
# Configuration

Made from the models by `make docs`; a test compares it. A crawl takes its values from a TOML file (`--config FILE`),
from options, and from `--set section.key=value`; of two values for one key the later of these holds.
`gossamer config show DIR` prints what a crawl runs with and where each value came from, `gossamer config check FILE`
checks a file, `gossamer init` writes one to begin with, `gossamer config schema` prints the JSON schema.
What is not known is an error that names the line and the nearest right name.

Relative paths in a file begin at the file. Repeatable options replace the file's list.
`--set section.key=none` unsets a key.
"""


TABLE = "| key | default | what | option |\n| --- | --- | --- | --- |"


def markdown() -> str:
    """Return `docs/configuration.md`."""
    parts = [HEAD]
    options = {flag.key: f"`--{flag.option}`" for flag in FLAGS if flag.key != "progress.form"}
    schema = Config.model_json_schema()
    for section, model in sections().items():
        parts += [
            f"## `[{section}]`\n{summary(model)}\n",
            "| key | default | what | option |",
            "| --- | --- | --- | --- |",
        ]
        properties = schema["$defs"][model.__name__]["properties"]
        for key, field in model.model_fields.items():
            what = (field.description or "").replace("|", "\\|")
            choices = _choices(properties[key])
            parts.append(f"| `{key}` | {_default(field)} | {what}{choices} | {options.get(f'{section}.{key}', '')} |")
        parts.append("")
    return "\n".join(parts)


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    return "" if default is None else f"`{written(default)}`".replace("|", "\\|")


def _choices(schema: dict[str, object]) -> str:
    values = schema.get("enum")
    return f" One of {', '.join(f'`{value}`' for value in values)}." if isinstance(values, list) else ""
