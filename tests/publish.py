"""Publish the documentation of this version beside that of others: `python -m tests.publish FOLDER URL`.

FOLDER is what a web server shows at URL, such as a worktree of a branch for pages. It gets a folder for each
`MAJOR.MINOR`, replaced by its later releases; `versions.json`, from which the theme makes the version selector; and a
page that leads to the newest version. Folders of other versions are not touched.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gossamer.model.product import __version__

ROOT = Path(__file__).parents[1]
LEADS_ON = """\
<!doctype html>
<meta charset="utf-8">
<title>Gossamer</title>
<meta http-equiv="refresh" content="0; url={newest}/">
<a href="{newest}/">Documentation of Gossamer {newest}</a>
"""


def publish(folder: Path, url: str, version: str = __version__) -> None:
    """Build the site of `version` from this source tree, and list it with those that the folder has.

    Raises `subprocess.CalledProcessError` if the build warns.
    """
    name = ".".join(version.split(".")[:2])
    _build(folder / name, f"{url.rstrip('/')}/{name}/")
    listing = folder / "versions.json"
    titles = (
        {one["version"]: one["title"] for one in json.loads(listing.read_text("utf-8"))} if listing.exists() else {}
    )
    names = sorted(titles | {name: version}, key=lambda one: [int(part) for part in one.split(".")], reverse=True)
    titles[name] = version
    newest = {names[0]: ["latest"]}
    entries = [{"version": one, "title": titles[one], "aliases": newest.get(one, [])} for one in names]
    listing.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(LEADS_ON.format(newest=names[0]), encoding="utf-8")


def _build(site: Path, url: str) -> None:
    """Build with the settings of `make site`, an address, and the version selector.

    The builder writes only below its own folder and cleans what it finds there, so it gets a copy of the source.
    """
    with tempfile.TemporaryDirectory() as made:
        source = Path(made)
        shutil.copytree(ROOT / "docs", source / "docs")
        settings = (ROOT / "zensical.toml").read_text(encoding="utf-8")
        settings = settings.replace("[project]\n", f"[project]\nsite_url = {json.dumps(url)}\n", 1)
        settings += '\n[project.extra.version]\nprovider = "mike"\n'
        (source / "zensical.toml").write_text(settings, encoding="utf-8")
        subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=source, check=True)
        shutil.rmtree(site, ignore_errors=True)
        shutil.move(source / "site", site)


if __name__ == "__main__":
    publish(Path(sys.argv[1]), sys.argv[2])
