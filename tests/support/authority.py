"""A private certificate authority, as a site has one, and certificates of servers on this machine."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_BEGIN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_END = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)


class Authority:
    """``ca_file`` is what clients have to trust; files are in ``folder``."""

    def __init__(self, folder: Path, name: str = "Site CA") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        certificate = self._signed(self._name, self._key.public_key(), is_authority=True)
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, address: str = "127.0.0.1", *hosts: str) -> tuple[Path, Path]:
        """Certificate and key of a server on an IP address, which may have names too."""
        key = ec.generate_private_key(ec.SECP256R1())
        by_name = [x509.DNSName(host) for host in hosts]
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address)), *by_name])
        certificate = self._signed(_named(address), key.public_key(), names=names)
        certificate_file, key_file = self._folder / f"{address}.pem", self._folder / f"{address}.key"
        certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return certificate_file, key_file

    def server_context(self, address: str = "127.0.0.1") -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(address))
        return context

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *,
        is_authority: bool = False,
        names: x509.SubjectAlternativeName | None = None,
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(_BEGIN)
            .not_valid_after(_END)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
