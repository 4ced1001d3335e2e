"""What cannot be rendered is refused before anything starts, in one line that says what to do."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gossamer.assembly.building import assemble
from gossamer.config.footprint import BROWSERS, ORIGIN, browser_bytes, fit_budget, fixed_bytes
from gossamer.config.gather import configure
from gossamer.config.sections import Config
from gossamer.features.render.browser import SANDBOX, program_of, require_browser, user_of
from gossamer.features.render.options import RenderOptions
from gossamer.model.errors import ConfigError


def config_of(*settings: str) -> Config:
    return configure(seeds=["https://a.test/"], sets=["crawl.render=always", *settings])


@pytest.mark.parametrize(
    ("settings", "says"), [(("render.program=no-such-browser",), "there is no 'no-such-browser': install it")]
)
def test_a_crawl_that_cannot_render_does_not_begin(tmp_path: Path, settings: tuple[str, ...], says: str) -> None:
    (tmp_path / "state").mkdir()
    with pytest.raises(ConfigError, match=says) as refused:
        assemble(config_of(*settings), tmp_path, opening_min=1)
    assert str(refused.value).startswith("crawl.render")
    assert "\n" not in str(refused.value)


def test_a_program_is_a_name_or_a_path(tmp_path: Path) -> None:
    program = tmp_path / "browser"
    program.write_text("#!/bin/sh")
    program.chmod(0o755)
    assert program_of(RenderOptions(program=str(program))) == str(program)
    assert program_of(RenderOptions(program="sh")).endswith("/sh")


def test_a_headless_shell_is_preferred_to_the_whole_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="there is none: install it"):
        program_of(RenderOptions())
    for name in ("chromium", "chrome-headless-shell", "chromium-headless-shell"):
        (tmp_path / name).write_text("#!/bin/sh")
        (tmp_path / name).chmod(0o755)
        assert program_of(RenderOptions()) == str(tmp_path / name)


@pytest.mark.skipif(os.getuid() != 0, reason="another user's browsers run as that user")
def test_browsers_never_run_as_root_in_a_sandbox() -> None:
    user, group = user_of(RenderOptions())
    assert user > 0
    assert group > 0
    assert user_of(RenderOptions(unsandboxed=True)) == (-1, -1)
    for name in ("root", "no-such-user"):
        with pytest.raises(ConfigError, match="unprivileged"):
            user_of(RenderOptions(user=name))


@pytest.mark.skipif(os.getuid() != 0, reason="another user's browsers run as that user")
def test_a_folder_for_temporary_files_that_browsers_may_not_enter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tempfile.mkdtemp()
    try:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        with pytest.raises(ConfigError, match=f"may not enter {folder}; set TMPDIR"):
            require_browser(RenderOptions(program="sh"))
        Path(folder).chmod(0o755)
        require_browser(RenderOptions(program="sh", unsandboxed=True))
    finally:
        Path(folder).rmdir()


FILTERED = """
import ctypes, struct
from gossamer.features.render.browser import require_browser
from gossamer.features.render.options import RenderOptions
# Load the number of the call; for chroot answer EPERM, as Podman does without the capability; else allow it.
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, {chroot}), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *rule) for rule in rules))
program = struct.pack("@HP", len(rules), ctypes.addressof(code))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, program, 0, 0) == 0  # PR_SET_SECCOMP
require_browser(RenderOptions(program="sh", unsandboxed=True))
require_browser(RenderOptions(program="sh"))
"""


@pytest.mark.skipif(Path(SANDBOX).exists(), reason="this one needs no user namespace")
def test_a_container_that_forbids_the_sandbox_is_told_what_to_permit() -> None:
    program = FILTERED.format(chroot={"x86_64": 161, "aarch64": 51}[platform.machine()])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1].startswith("gossamer.model.errors.ConfigError: crawl.render: browsers would")
    assert "--cap-add SYS_CHROOT" in done.stderr


def test_a_budget_that_is_not_set_grows_by_the_browsers_and_another_holds_them() -> None:
    plain, rendering = fit_budget(config_of("crawl.render=never")), fit_budget(config_of())
    assert fixed_bytes(plain).get(BROWSERS) is None
    assert fixed_bytes(rendering)[BROWSERS] == browser_bytes(rendering) > 1 << 30
    assert rendering.memory.budget_bytes == plain.memory.budget_bytes + browser_bytes(rendering)
    assert rendering.state.cache_bytes == plain.state.cache_bytes
    assert fit_budget(rendering).memory.budget_bytes == rendering.memory.budget_bytes
    assert rendering.origin(ORIGIN) == BROWSERS
    with pytest.raises(ConfigError, match="browsers"):
        fit_budget(config_of("memory.budget_bytes=512MiB"))
