"""The key file: private, never overwritten, rotated so that no signature loses its key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gossamer.features.identity.keys import new_keys, read_keys, rotate_keys, signing_key
from gossamer.features.identity.signing import directory_of
from gossamer.model.errors import ConfigError

NOW = 1_700_000_000.0
DAY = 86_400


@pytest.mark.promise("Identity", "Private keys are in one file that only its owner can read; no output shows them.")
def test_only_the_owner_reads_the_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    made = new_keys(path, NOW)
    assert path.stat().st_mode & 0o777 == 0o600
    secret = json.loads(path.read_text())["keys"][0]["d"]
    assert secret not in repr(made)
    assert secret.encode() not in directory_of(read_keys(path), NOW)
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_keys(path)


def test_a_key_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    made = new_keys(path, NOW)
    with pytest.raises(ConfigError, match="exists"):
        new_keys(path, NOW)
    assert [key.id for key in read_keys(path)] == [made.id]


@pytest.mark.parametrize(
    "text",
    ["", "{}", '{"keys": []}', '{"keys": [{"kty": "RSA"}]}', '{"keys": [{"kty":"OKP","crv":"Ed25519","d":"AA"}]}'],
)
def test_what_is_no_key_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys"
    path.touch(mode=0o600)
    path.write_text(text)
    with pytest.raises(ConfigError, match="is no key file"):
        read_keys(path)


def test_a_public_part_that_is_not_that_of_its_secret_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    new_keys(path, NOW)
    kept = json.loads(path.read_text())
    kept["keys"][0]["x"] = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"
    path.write_text(json.dumps(kept))
    with pytest.raises(ConfigError, match="is no key file"):
        read_keys(path)


def test_a_missing_file_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gossamer identity new"):
        read_keys(tmp_path / "none")


@pytest.mark.promise("Identity", "A rotated key stays in the directory until its last signature has expired.")
def test_a_rotation_leaves_no_signature_without_its_key(tmp_path: Path) -> None:
    """At each hour of three days: the key that signs was in the directory a day before and is there a day after."""
    path = tmp_path / "keys"
    first = new_keys(path, NOW - 2 * DAY)
    published = {hour: directory_of(read_keys(path), NOW + 3_600 * hour) for hour in range(-24, 0)}
    second = rotate_keys(path, NOW)
    keys = read_keys(path)
    published |= {hour: directory_of(keys, NOW + 3_600 * hour) for hour in range(97)}
    signs = {hour: signing_key(keys, NOW + 3_600 * hour).id for hour in range(72)}
    assert set(signs.values()) == {first.id, second.id}
    for hour, keyid in signs.items():
        for then in (hour - 24, hour, hour + 24):
            assert keyid.encode() in published[then], (hour, then)
    assert first.id.encode() not in published[96]


def test_an_expired_key_leaves_the_file_with_the_next_rotation(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    first = new_keys(path, NOW)
    second = rotate_keys(path, NOW)
    with pytest.raises(ConfigError, match="begins later"):
        rotate_keys(path, NOW)
    third = rotate_keys(path, NOW + 3 * DAY)
    assert [key.id for key in read_keys(path)] == [second.id, third.id]
    assert first.id not in path.read_text()


def test_a_disclosed_key_is_gone_at_once(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    new_keys(path, NOW)
    made = rotate_keys(path, NOW + 1, at_once=True)
    assert [key.id for key in read_keys(path)] == [made.id]
    assert signing_key(read_keys(path), NOW + 1).id == made.id
