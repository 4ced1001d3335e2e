"""Signatures against the vectors of RFC 9421 and of the Web Bot Auth draft, and against another verifier."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, InvalidSignature, algorithms

from gossamer.features.identity.keys import KeyFile, SigningKey, new_keys, read_keys, rotate_keys, thumbprint
from gossamer.features.identity.signing import RequestSigner, directory_headers, directory_of, signature

NOW = 1_735_689_600.0
# RFC 9421, appendix B.1.4, as a JSON Web Key.
SECRET = base64.urlsafe_b64decode("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU=")
X = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"
KEYID = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"


@pytest.fixture
def key() -> SigningKey:
    return SigningKey(SECRET)


def test_a_key_is_named_by_its_thumbprint(key: SigningKey) -> None:
    """RFC 8037, appendix A.3, and the same for the key of RFC 9421."""
    assert thumbprint("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo") == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    assert (key.x, key.id) == (X, KEYID)
    assert repr(key) == f"Key({KEYID})"


def test_the_vector_of_rfc_9421(key: SigningKey) -> None:
    """Appendix B.2.6."""
    covered = [
        ('"date"', "Tue, 20 Apr 2021 02:07:55 GMT"),
        ('"@method"', "POST"),
        ('"@path"', "/foo"),
        ('"@authority"', "example.com"),
        ('"content-type"', "application/json"),
        ('"content-length"', "18"),
    ]
    covers, signed = signature(key, covered, ';created=1618884473;keyid="test-key-ed25519"')
    assert covers == (
        '("date" "@method" "@path" "@authority" "content-type" "content-length")'
        ';created=1618884473;keyid="test-key-ed25519"'
    )
    assert signed == (":wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:")


@pytest.mark.parametrize(
    ("name", "until", "nonce", "expected"),
    [
        (
            '"signature-agent";key="agent2"',
            4889289600,
            "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==",
            ":RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:",
        ),
        (  # The form before dictionaries: the draft keeps it for verifiers, and we never send it.
            '"signature-agent"',
            1735693200,
            "e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==",
            ":jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:",
        ),
    ],
)
def test_the_request_vectors_of_the_draft(key: SigningKey, name: str, until: int, nonce: str, expected: str) -> None:
    """draft-meunier-webbotauth-httpsig-protocol-02, "EdDSA Using Curve edwards25519"."""
    covered = [('"@authority"', "example.com"), (name, '"https://signature-agent.test"')]
    parameters = f';created=1735689600;keyid="{KEYID}";alg="ed25519";expires={until};nonce="{nonce}";tag="web-bot-auth"'
    _, signed = signature(key, covered, parameters)
    assert signed == expected


def test_the_directory_vector_of_the_draft(key: SigningKey) -> None:
    """The same draft, "Signed Directory Response": the document to the byte, its digest, its signature."""
    document = directory_of([key], NOW)
    assert document.decode() == (f'{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"{KEYID}","x":"{X}","use":"sig"}}]}}')
    headers = directory_headers(document, [key], "https://signature-agent.test", NOW)
    assert headers["Content-Digest"] == "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:"
    covered = [('"@authority";req', "signature-agent.test"), ('"content-digest"', headers["Content-Digest"])]
    _, signed = signature(
        key, covered, f';created=1735689600;expires=4889289600;keyid="{KEYID}";tag="http-message-signatures-directory"'
    )
    assert signed == (":l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:")
    # Ours differs from the vector in its times alone.
    expires = int(NOW) + 7 * 86_400
    assert headers["Signature-Input"] == (
        'binding0=("@authority";req "content-digest");created=1735689600;'
        f'expires={expires};keyid="{KEYID}";tag="http-message-signatures-directory"'
    )
    assert headers["Content-Type"] == "application/http-message-signatures-directory+json"


class Resolver(HTTPSignatureKeyResolver):
    """Knows the keys of a directory by their thumbprints."""

    def __init__(self, document: bytes) -> None:
        self._keys = {one["kid"]: one["x"] for one in json.loads(document)["keys"]}

    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(self._keys[key_id] + "="))


class Message:
    """A request, as the verifier takes it."""

    def __init__(self, method: str, url: str, headers: dict[str, str]) -> None:
        self.method, self.url, self.headers = method, url, headers


def verified(message: Message, document: bytes) -> list[object]:
    """Return what a verifier that is not ours says; it raises for what is not signed as it claims."""
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Resolver(document))
    verifier.validate_created_and_expires = lambda *_, **__: None  # The times of these tests are not today's.
    return list(verifier.verify(message, expect_tag="web-bot-auth"))


@pytest.fixture
def signer(tmp_path: Path) -> RequestSigner:
    new_keys(tmp_path / "keys", NOW)
    return RequestSigner(KeyFile(tmp_path / "keys", NOW), "https://bot.example", 300, lambda: NOW)


@pytest.mark.parametrize(
    ("method", "scheme", "authority", "target", "url"),
    [
        ("GET", "https", "example.com", "/", "https://example.com/"),
        ("GET", "https", "EXAMPLE.com:443", "/a/%7Eb?q=1", "https://example.com/a/%7Eb?q=1"),
        ("GET", "http", "example.com:80", "/robots.txt", "http://example.com/robots.txt"),
        ("POST", "http", "example.com:8080", "/?x", "http://example.com:8080/?x"),
    ],
)
def test_another_verifier_agrees(
    tmp_path: Path, signer: RequestSigner, method: str, scheme: str, authority: str, target: str, url: str
) -> None:
    headers = dict(signer(method, scheme, authority, target))
    document = directory_of(read_keys(tmp_path / "keys"), NOW)
    [result] = verified(Message(method, url, headers), document)
    assert '"@method"' in str(result.covered_components)
    with pytest.raises(InvalidSignature):
        verified(Message(method, url.replace("example", "exbmple"), headers), document)
    with pytest.raises(InvalidSignature):
        verified(Message("PUT", url, headers), document)


def test_a_request_has_what_the_draft_requires(signer: RequestSigner) -> None:
    one, other = (dict(signer("GET", "https", "example.com", "/")) for _ in range(2))
    assert one["Signature-Agent"] == 'sig1="https://bot.example"'
    parameters = one["Signature-Input"]
    assert parameters.startswith('sig1=("@authority" "@method" "@path" "signature-agent";key="sig1");')
    assert f";created={int(NOW)};" in parameters
    assert f";expires={int(NOW) + 300};" in parameters
    assert ';tag="web-bot-auth"' in parameters
    nonces = [re.findall(r';nonce="([^"]+)"', signed["Signature-Input"]) for signed in (one, other)]
    assert nonces[0] != nonces[1]
    assert one["Signature"] != other["Signature"]


def test_a_running_signer_takes_the_new_key_when_it_begins(tmp_path: Path) -> None:
    path, now = tmp_path / "keys", NOW
    first = new_keys(path, now)
    signer = RequestSigner(KeyFile(path, now), "https://bot.example", 300, lambda: now)

    def keyid() -> str:
        return re.findall(r'keyid="([^"]+)"', dict(signer("GET", "https", "a.test", "/"))["Signature-Input"])[0]

    assert keyid() == first.id
    second = rotate_keys(path, now)
    now += 3_600
    assert keyid() == first.id, "a verifier may not know the new key yet"
    now += 86_400
    assert keyid() == second.id
    assert len(json.loads(directory_of(read_keys(path), now))["keys"]) == 2, "signatures of the old key may be valid"
    now += 86_400
    assert [one["kid"] for one in json.loads(directory_of(read_keys(path), now))["keys"]] == [second.id]
    path.unlink()
    now += 3_600
    assert keyid() == second.id, "a file that is gone takes no key away"
