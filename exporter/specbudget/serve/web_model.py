"""The web configuration file's model: the format that exporters of the Prometheus family share.

Source: https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md. A value that this server
cannot honour is refused with what to write instead, never passed over: nothing here is weaker than the file says.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator

from specbudget.budget.section import Positive, Section
from specbudget.budget.units import parse_duration

MAX_BCRYPT_COST = 16
"""Each step doubles the time; at 16 one check takes some 4 s of a processor, and a scrape may last 10 s."""

_BCRYPT = re.compile(r"\$2[aby]\$([0-9]{2})\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}")
"""Version, cost, 22 characters of salt (the last with four bits unused), 31 of hash."""

TLS_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}

TLS13_SUITES = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})

TLS12_SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
}
"""Go's names, which the file uses, of the suites that Go calls secure, and OpenSSL's."""

CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}

UNVERIFIED = ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert")
"""Policies that take any certificate, also a self-made one."""

VERIFIED = ("VerifyClientCertIfGiven", "RequireAndVerifyClientCert")


def _tls_version(value: object) -> object:
    if value in ("TLS10", "TLS11"):
        raise ValueError(f"{value} is broken and not served: write TLS12 or TLS13")
    if value not in TLS_VERSIONS:
        raise ValueError("not known here: write TLS12 or TLS13")
    return value


def _client_auth(value: object) -> object:
    if value in UNVERIFIED:
        raise ValueError(
            f"{value} is not supported, for it takes any certificate unchecked: "
            "write RequireAndVerifyClientCert with client_ca_file, or NoClientCert"
        )
    if value not in ("NoClientCert", *VERIFIED):
        raise ValueError(f"not known here: choose NoClientCert, {' or '.join(VERIFIED)}")
    return value


def _suite(value: object) -> object:
    if value not in TLS12_SUITES and value not in TLS13_SUITES:
        raise ValueError("no cipher suite that Go's crypto/tls calls secure: take its name from CipherSuites() there")
    return value


def _curve(value: object) -> object:
    if value not in CURVES:
        raise ValueError(f"not known here: choose one of {', '.join(CURVES)}")
    return value


def _hash(value: object) -> object:
    """The value as it is; no message of this function holds a character of it."""
    match = _BCRYPT.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 4 <= int(match[1]) <= 31:
        raise ValueError("should be a bcrypt hash and not a password: make one with `htpasswd -nBC 10 USER`")
    if int(match[1]) > MAX_BCRYPT_COST:
        raise ValueError(
            f"a bcrypt hash of cost {match[1]} takes too long to check: "
            f"make one of at most {MAX_BCRYPT_COST}, with `htpasswd -nBC 10 USER`"
        )
    return value


def _san(value: object) -> object:
    """Addresses in their one canonical form, everything else as it is."""
    if not isinstance(value, str) or not value:
        raise ValueError("should be a name, an address, a mail address or a URI of the client's certificate")
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        return value


def _header(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        # X-XSS-Protection: 0 is the usual value, and a number to YAML
        return str(value)
    if not isinstance(value, str) or not value.isascii() or (value and not value.isprintable()):
        raise ValueError("should be one line of ASCII text")
    return value


def _interval(value: Any) -> float:
    """Seconds; 0 needs no unit, as in Go."""
    return 0.0 if value in (0, "0") and not isinstance(value, bool) else parse_duration(value)


TlsVersion = Annotated[str, BeforeValidator(_tls_version)]
Suite = Annotated[str, BeforeValidator(_suite)]
Curve = Annotated[str, BeforeValidator(_curve)]
BcryptHash = Annotated[SecretStr, BeforeValidator(_hash)]
San = Annotated[str, BeforeValidator(_san)]
Header = Annotated[str, BeforeValidator(_header)]


class TlsServer(Section):
    """TLS towards those who read from the sidecar; each of certificate, key and client CA as a file or inline."""

    cert: str | None = None
    key: SecretStr | None = None
    client_ca: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    client_ca_file: str | None = None
    client_auth_type: Annotated[str, BeforeValidator(_client_auth)] = "NoClientCert"
    client_allowed_sans: list[San] | None = None
    min_version: TlsVersion = "TLS12"
    max_version: TlsVersion = "TLS13"
    cipher_suites: list[Suite] = Field(default_factory=list)
    prefer_server_cipher_suites: bool = True
    curve_preferences: list[Curve] = Field(default_factory=list)

    @field_validator("curve_preferences")
    @classmethod
    def _one_curve(cls, value: list[str]) -> list[str]:
        if len(value) > 1:
            raise ValueError("several curves are not supported: name the one to allow, or leave the key out")
        return value

    @model_validator(mode="after")
    def _certificate_and_key(self) -> Self:
        for name in ("cert", "key", "client_ca"):
            if getattr(self, name) is not None and getattr(self, f"{name}_file") is not None:
                raise ValueError(f"{name} and {name}_file exclude one another: keep one")
        for name in ("cert", "key"):
            if getattr(self, name) is None and getattr(self, f"{name}_file") is None:
                raise ValueError(f"{name}_file is missing: add it, or leave tls_server_config out to serve without TLS")
        return self

    @model_validator(mode="after")
    def _client_certificates(self) -> Self:
        verified, ca = self.client_auth_type in VERIFIED, self.client_ca or self.client_ca_file
        if verified and not ca:
            raise ValueError(f"client_auth_type: {self.client_auth_type} needs client_ca_file: add it")
        if ca and not verified:
            raise ValueError("client_ca_file has no effect: write client_auth_type: RequireAndVerifyClientCert too")
        if self.client_allowed_sans is not None and self.client_auth_type != "RequireAndVerifyClientCert":
            raise ValueError("client_allowed_sans needs client_auth_type: RequireAndVerifyClientCert")
        if self.client_allowed_sans == []:
            raise ValueError("client_allowed_sans is empty, so that nobody could connect: add a name, or leave it out")
        return self

    @model_validator(mode="after")
    def _versions_and_suites(self) -> Self:
        if TLS_VERSIONS[self.min_version] > TLS_VERSIONS[self.max_version]:
            raise ValueError("min_version is above max_version: swap them")
        suites = set(self.cipher_suites)
        if self.max_version == "TLS13" and suites & TLS13_SUITES and not suites >= TLS13_SUITES:
            raise ValueError(
                "cipher_suites of TLS 1.3 cannot be chosen one by one: "
                "name all three, or none, or write max_version: TLS12"
            )
        if self.min_version == "TLS12" and suites and not self.tls12_suites():
            raise ValueError("cipher_suites names none for TLS 1.2: add one, or write min_version: TLS13")
        return self

    def tls12_suites(self) -> list[str]:
        """OpenSSL's names of the suites that may be used below TLS 1.3, in the file's order; empty: OpenSSL's own."""
        return [TLS12_SUITES[name] for name in self.cipher_suites if name in TLS12_SUITES]


class Headers(Section):
    """Headers that every answer carries; blank means none."""

    content_security_policy: Annotated[Header, Field(alias="Content-Security-Policy")] = ""
    frame_options: Annotated[Literal["deny", "sameorigin", ""], Field(alias="X-Frame-Options")] = ""
    content_type_options: Annotated[Literal["nosniff", ""], Field(alias="X-Content-Type-Options")] = ""
    xss_protection: Annotated[Header, Field(alias="X-XSS-Protection")] = ""
    strict_transport_security: Annotated[Header, Field(alias="Strict-Transport-Security")] = ""

    def to_add(self) -> dict[str, str]:
        """The headers that are not blank, by name."""
        return {name: value for name, value in self.model_dump(by_alias=True).items() if value}


class HttpServer(Section):
    """HTTP as such."""

    http2: bool = False
    headers: Headers = Headers()

    @field_validator("http2")
    @classmethod
    def _no_http2(cls, value: bool) -> bool:
        if value:
            raise ValueError("HTTP/2 is not served: write false, or leave the key out; clients use HTTP/1.1 then")
        return value


class RateLimit(Section):
    """A token bucket over all requests: one more each `interval` seconds, at most `burst` at once; 0 is no limit."""

    interval: Annotated[float, BeforeValidator(_interval)]
    burst: Positive


class WebConfig(Section):
    """A whole web configuration file."""

    tls_server_config: TlsServer | None = None
    http_server_config: HttpServer = HttpServer()
    basic_auth_users: dict[str, BcryptHash] = Field(default_factory=dict)
    rate_limit: RateLimit | None = None

    @field_validator("basic_auth_users", mode="before")
    @classmethod
    def _users(cls, value: object) -> object:
        if isinstance(value, dict):
            if not value:
                raise ValueError("names no user: add one, or leave the key out to serve without passwords")
            if any(":" in str(name) for name in value):
                raise ValueError("a user's name holds no colon: write NAME: HASH, with a blank behind the colon")
            # a name of digits is a number to YAML
            return {str(name) if isinstance(name, int) else name: hashed for name, hashed in value.items()}
        return value

    @field_validator("tls_server_config", "rate_limit", mode="before")
    @classmethod
    def _not_blank(cls, value: object) -> object:
        if value is None:
            raise ValueError("has nothing below it: add its keys, or leave it out")
        return value
