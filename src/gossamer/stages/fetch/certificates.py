"""Certificates: checks trusted certificates and client certificates before a request needs them."""

import ssl
from pathlib import Path

import certifi

from gossamer.model.errors import ConfigError
from gossamer.stages.fetch.options import FetchOptions


def ca_file(options: FetchOptions) -> str:
    """Return the file of certificates to trust: the operator's, else the system's, else certifi's.

    A libcurl from a wheel looks where its build system had them, so the path is always set.
    """
    return options.ca_bundle or ssl.get_default_verify_paths().cafile or certifi.where()


def check_trusted(options: FetchOptions) -> None:
    """Read the operator's file of certificates. Raises ConfigError: the file cannot be read, or has no certificate."""
    bundle = options.ca_bundle
    if not bundle:
        return
    if not Path(bundle).is_file():
        raise ConfigError(f"fetch.ca_bundle: no file {bundle}; name a PEM file of certificates")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(bundle)
    except ssl.SSLError as error:
        raise ConfigError(
            f"fetch.ca_bundle: {bundle} holds no certificate in PEM; name a file of certificates to trust"
        ) from error
    except OSError as error:
        raise ConfigError(f"fetch.ca_bundle: cannot read {bundle}: {error.strerror}") from error


def check_certificate(where: str, certificate: str, key: str) -> None:
    """Raise ConfigError if a client certificate and its key cannot be used: libcurl reports that for each request."""
    if not certificate:
        raise ConfigError(f'request."{where}": certificate_key has no certificate; name the file of that too')
    asked = False

    def passphrase() -> bytes:
        nonlocal asked
        asked = True
        return b""

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key or None, passphrase)
    except ssl.SSLError as error:
        why = "the key is not that of the certificate" if "MISMATCH" in str(error.reason) else "no PEM that can be read"
        why = "the key has a passphrase" if asked else why
        files = f"{certificate} and {key}" if key else certificate
        raise ConfigError(
            f'request."{where}": certificate: {files}: {why}; name PEM files of a certificate and its key, without '
            "passphrase"
        ) from error
    except OSError as error:
        file = next((one for one in (certificate, key) if one and not Path(one).is_file()), certificate)
        raise ConfigError(f'request."{where}": certificate: cannot read {file}: {error.strerror}') from error
