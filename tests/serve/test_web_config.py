"""The web configuration file: what is read, and the one line for each thing that can be wrong."""

from __future__ import annotations

import contextlib
import ssl
from datetime import datetime
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import CertificateBuilder, Name, random_serial_number
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.certificates import Authority

from specbudget.errors import BudgetError
from specbudget.serve.web_config import LoadedWebConfig, read_web_config

HASH = "$2y$04$OrWrQoSFf9b/BHApS6ktaeKKwT7n/DhITJItfgjGMLSGzpl8AJLA6"
"""Of `open sesame`, at the lowest cost; htpasswd writes the version 2y."""

TLS = "tls_server_config: {cert_file: web.crt, key_file: web.key"


def load(folder: Path, text: str) -> LoadedWebConfig:
    """The web configuration of this text; names in it are taken from `folder`."""
    path = folder / "web.yml"
    path.write_text(text)
    return read_web_config(path).load()


def problems(folder: Path, text: str) -> list[str]:
    """The lines that a person sees, the file's name cut off."""
    with pytest.raises(BudgetError) as caught:
        load(folder, text)
    return [str(problem).removeprefix(f"{folder / 'web.yml'}:") for problem in caught.value.problems]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an authority's ca.pem, a certificate web.crt and its key web.key."""
    Authority(tmp_path).pair("web")
    return tmp_path


NO_HASH = "basic_auth_users.watcher: should be a bcrypt hash and not a password: make one with `htpasswd -nBC 10 USER`"

RULES: dict[str, tuple[str, str]] = {
    # the file as a whole
    "an empty file": ("", "1: a web configuration is a mapping: write {} for one that asks for nothing"),
    "comments only": ("# none\n", "1: a web configuration is a mapping: write {} for one that asks for nothing"),
    "a list": ("- a\n", "1: a web configuration is a mapping: write {} for one that asks for nothing"),
    "an unknown key": ("basic_auth_user: {}\n", "1: basic_auth_user: unknown key; did you mean “basic_auth_users”?"),
    "a key far from any": (
        "\nxyz: 1\n",
        "2: xyz: unknown key; known are tls_server_config, http_server_config, basic_auth_users, rate_limit",
    ),
    "a key twice": ("rate_limit: {interval: 1s, burst: 2}\nrate_limit: {}\n", "2: rate_limit: given twice: keep one"),
    # users
    "a password": (
        "basic_auth_users:\n  watcher: not-a-bcrypt-hash\n",
        f"2: {NO_HASH}",
    ),
    "a password of digits": (
        "basic_auth_users: {watcher: 123456}\n",
        f"1: {NO_HASH}",
    ),
    "a hash cut off": (
        f"basic_auth_users: {{watcher: {HASH[:-1]}}}\n",
        f"1: {NO_HASH}",
    ),
    "a hash of another kind": (
        "basic_auth_users: {watcher: $apr1$QsPsvY2u$0000000000000000000000}\n",
        f"1: {NO_HASH}",
    ),
    "the broken version of bcrypt": (
        f"basic_auth_users: {{watcher: {HASH.replace('2y', '2x')}}}\n",
        f"1: {NO_HASH}",
    ),
    "a cost that bcrypt has not": (
        f"basic_auth_users: {{watcher: {HASH.replace('$04$', '$03$')}}}\n",
        f"1: {NO_HASH}",
    ),
    "a cost that takes minutes": (
        f"basic_auth_users: {{watcher: {HASH.replace('$04$', '$17$')}}}\n",
        "1: basic_auth_users.watcher: a bcrypt hash of cost 17 takes too long to check: "
        "make one of at most 16, with `htpasswd -nBC 10 USER`",
    ),
    "no users": (
        "basic_auth_users: {}\n",
        "1: basic_auth_users: names no user: add one, or leave the key out to serve without passwords",
    ),
    "users left blank": (
        "basic_auth_users:\n",
        "1: basic_auth_users: this is a section: put its keys below it, indented",
    ),
    "a colon without a blank": (
        "basic_auth_users:\n  watcher:not-a-bcrypt-hash\n",
        "1: basic_auth_users: this is a section: put its keys below it, indented",
    ),
    "a colon in a name": (
        f'basic_auth_users: {{"watcher:not-a-bcrypt-hash": {HASH}}}\n',
        "1: basic_auth_users: a user's name holds no colon: write NAME: HASH, with a blank behind the colon",
    ),
    # TLS
    "TLS left blank": (
        "tls_server_config:\n",
        "1: tls_server_config: has nothing below it: add its keys, or leave it out",
    ),
    "TLS without a certificate": (
        "tls_server_config: {min_version: TLS13}\n",
        "1: tls_server_config: cert_file is missing: add it, or leave tls_server_config out to serve without TLS",
    ),
    "TLS without a key": (
        "tls_server_config: {cert_file: web.crt}\n",
        "1: tls_server_config: key_file is missing: add it, or leave tls_server_config out to serve without TLS",
    ),
    "a certificate twice": (
        f"{TLS}, cert: x}}\n",
        "1: tls_server_config: cert and cert_file exclude one another: keep one",
    ),
    "a key of TLS twice": (
        f"{TLS}, key: x}}\n",
        "1: tls_server_config: key and key_file exclude one another: keep one",
    ),
    "a client authority twice": (
        f"{TLS}, client_ca: x, client_ca_file: ca.pem}}\n",
        "1: tls_server_config: client_ca and client_ca_file exclude one another: keep one",
    ),
    "an unknown key of TLS": (
        f"{TLS}, client_ca_fil: ca.pem}}\n",
        "1: tls_server_config.client_ca_fil: unknown key; did you mean “client_ca_file”?",
    ),
    "a policy that is none": (
        f"{TLS}, client_auth_type: Always}}\n",
        "1: tls_server_config.client_auth_type: not known here: "
        "choose NoClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert",
    ),
    **{
        f"the policy {policy}": (
            f"{TLS}, client_auth_type: {policy}}}\n",
            f"1: tls_server_config.client_auth_type: {policy} is not supported, for it takes any certificate "
            "unchecked: write RequireAndVerifyClientCert with client_ca_file, or NoClientCert",
        )
        for policy in ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert")
    },
    **{
        f"{policy} without an authority": (
            f"{TLS}, client_auth_type: {policy}}}\n",
            f"1: tls_server_config: client_auth_type: {policy} needs client_ca_file: add it",
        )
        for policy in ("VerifyClientCertIfGiven", "RequireAndVerifyClientCert")
    },
    "an authority without a policy": (
        f"{TLS}, client_ca_file: ca.pem}}\n",
        "1: tls_server_config: client_ca_file has no effect: write client_auth_type: RequireAndVerifyClientCert too",
    ),
    "names without a policy": (
        f"{TLS}, client_ca_file: ca.pem, client_auth_type: VerifyClientCertIfGiven, client_allowed_sans: [a]}}\n",
        "1: tls_server_config: client_allowed_sans needs client_auth_type: RequireAndVerifyClientCert",
    ),
    "a list of no names": (
        f"{TLS}, client_ca_file: ca.pem, client_auth_type: RequireAndVerifyClientCert, client_allowed_sans: []}}\n",
        "1: tls_server_config: client_allowed_sans is empty, so that nobody could connect: add a name, or leave it out",
    ),
    "a name that is a number": (
        f"{TLS}, client_ca_file: ca.pem, client_auth_type: RequireAndVerifyClientCert, client_allowed_sans: [7]}}\n",
        "1: tls_server_config.client_allowed_sans.0: "
        "should be a name, an address, a mail address or a URI of the client's certificate",
    ),
    **{
        f"{key} {version}": (
            f"{TLS}, {key}: {version}}}\n",
            f"1: tls_server_config.{key}: {version} is broken and not served: write TLS12 or TLS13",
        )
        for key in ("min_version", "max_version")
        for version in ("TLS10", "TLS11")
    },
    "a version that is none": (
        f"{TLS}, min_version: 1.3}}\n",
        "1: tls_server_config.min_version: not known here: write TLS12 or TLS13",
    ),
    "versions the wrong way round": (
        f"{TLS}, min_version: TLS13, max_version: TLS12}}\n",
        "1: tls_server_config: min_version is above max_version: swap them",
    ),
    "a suite that is none": (
        f"{TLS}, cipher_suites: [TLS_MADE_UP]}}\n",
        "1: tls_server_config.cipher_suites.0: no cipher suite that Go's crypto/tls calls secure: "
        "take its name from CipherSuites() there",
    ),
    "a suite that is insecure": (
        f"{TLS}, cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]}}\n",
        "1: tls_server_config.cipher_suites.0: no cipher suite that Go's crypto/tls calls secure: "
        "take its name from CipherSuites() there",
    ),
    "one suite of TLS 1.3": (
        f"{TLS}, cipher_suites: [TLS_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]}}\n",
        "1: tls_server_config: cipher_suites of TLS 1.3 cannot be chosen one by one: "
        "name all three, or none, or write max_version: TLS12",
    ),
    "no suite of TLS 1.2": (
        f"{TLS}, cipher_suites: [TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256]}}\n",
        "1: tls_server_config: cipher_suites names none for TLS 1.2: add one, or write min_version: TLS13",
    ),
    "a curve that is none": (
        f"{TLS}, curve_preferences: [CurveP192]}}\n",
        "1: tls_server_config.curve_preferences.0: not known here: "
        "choose one of CurveP256, CurveP384, CurveP521, X25519",
    ),
    "several curves": (
        f"{TLS}, curve_preferences: [X25519, CurveP256]}}\n",
        "1: tls_server_config.curve_preferences: several curves are not supported: "
        "name the one to allow, or leave the key out",
    ),
    # HTTP
    "HTTP/2": (
        "http_server_config: {http2: true}\n",
        "1: http_server_config.http2: HTTP/2 is not served: "
        "write false, or leave the key out; clients use HTTP/1.1 then",
    ),
    "a header that is not for configuration": (
        "http_server_config: {headers: {X-Frame-Option: deny}}\n",
        "1: http_server_config.headers.X-Frame-Option: unknown key; did you mean “X-Frame-Options”?",
    ),
    "frames for all": (
        "http_server_config: {headers: {X-Frame-Options: allow}}\n",
        "1: http_server_config.headers.X-Frame-Options: not known here: choose 'deny', 'sameorigin' or ''",
    ),
    "another sniffing": (
        "http_server_config: {headers: {X-Content-Type-Options: sniff}}\n",
        "1: http_server_config.headers.X-Content-Type-Options: not known here: choose 'nosniff' or ''",
    ),
    "a header of two lines": (
        'http_server_config: {headers: {Content-Security-Policy: "a\\r\\nSet-Cookie: b"}}\n',
        "1: http_server_config.headers.Content-Security-Policy: should be one line of ASCII text",
    ),
    "a header that is a list": (
        "http_server_config: {headers: {X-XSS-Protection: [0]}}\n",
        "1: http_server_config.headers.X-XSS-Protection: should be one line of ASCII text",
    ),
    # rate
    "a rate left blank": ("rate_limit:\n", "1: rate_limit: has nothing below it: add its keys, or leave it out"),
    "a rate without a burst": ("rate_limit: {interval: 1s}\n", "1: rate_limit.burst: missing: add it"),
    "a rate without an interval": ("rate_limit: {burst: 1}\n", "1: rate_limit.interval: missing: add it"),
    "a burst of none": (
        "rate_limit: {interval: 1s, burst: 0}\n",
        "1: rate_limit.burst: should be greater than or equal to 1",
    ),
    "an interval without a unit": (
        "rate_limit: {interval: 5, burst: 1}\n",
        "1: rate_limit.interval: 5 is not a duration: write a number with a unit, like 5s, 30m or 28d",
    ),
}


@pytest.mark.parametrize(("text", "line"), RULES.values(), ids=RULES)
def test_every_rule_has_one_clear_line(folder: Path, text: str, line: str) -> None:
    """The text breaks one rule; the line names place, key and fix, and repeats no password."""
    told = problems(folder, text)
    assert told == [line]
    assert "not-a-bcrypt-hash" not in told[0]
    assert "123456" not in told[0]


@pytest.mark.parametrize(
    "password", ["*made-up-word", "!made-up-word", "&made-up-word", "{made-up-word", "@made-up-word"]
)
def test_a_password_without_quotes_is_not_repeated_by_the_parser(folder: Path, password: str) -> None:
    """A password may begin with a sign of YAML's; whatever it is taken for, no word of it is told."""
    (line,) = problems(folder, f"basic_auth_users:\n  watcher: {password}\n")
    assert "made-up" not in line


FILES: dict[str, tuple[str, str, str | None, str]] = {
    "no certificate": ("cert_file", "web.crt", None, "{file} cannot be read: No such file or directory"),
    "no key": ("key_file", "web.key", None, "{file} cannot be read: No such file or directory"),
    "no client authority": ("client_ca_file", "ca.pem", None, "{file} cannot be read: No such file or directory"),
    "text for a certificate": ("cert_file", "web.crt", "x", "{file} is no PEM certificate"),
    "text for a key": ("key_file", "web.key", "x", "{file} is no PEM private key"),
    "text for a client authority": ("client_ca_file", "ca.pem", "x", "{file} is no PEM certificate"),
}


@pytest.mark.parametrize(("key", "name", "content", "says"), FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_used_is_named(folder: Path, key: str, name: str, content: str | None, says: str) -> None:
    """Line, key and file of what is missing or is not what it should be."""
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    text = f"{TLS},\n client_ca_file: ca.pem, client_auth_type: RequireAndVerifyClientCert}}\n"
    (line,) = problems(folder, text)
    place = 2 if key == "client_ca_file" else 1
    assert line.startswith(f"{place}: tls_server_config.{key}: {says.format(file=folder / name)}")


def test_a_key_of_another_certificate_is_told(folder: Path) -> None:
    """As after a rotation of one of the two."""
    Authority(folder, "other").pair("other")
    (line,) = problems(folder, f"{TLS.replace('web.key', 'other.key')}}}\n")
    assert line == (
        f"1: tls_server_config.key_file: {folder}/other.key is not the key of the certificate {folder}/web.crt"
    )


def test_a_bad_inline_key_is_told_at_its_key_without_a_word_of_it(folder: Path) -> None:
    """What stands in the file itself is named by its place."""
    (line,) = problems(folder, "tls_server_config:\n  cert_file: web.crt\n  key: made-up-secret\n")
    assert line.startswith("3: tls_server_config.key: what stands here is no PEM private key")
    assert "made-up-secret" not in line


def indented(path: Path) -> str:
    """A file's text as a block of YAML."""
    return path.read_text().replace("\n", "\n      ")


def test_inline_certificates_are_as_good_as_files(folder: Path) -> None:
    """Certificate, key and client authority may stand in the file itself; the key is in no representation."""
    text = "tls_server_config:\n  client_auth_type: RequireAndVerifyClientCert\n"
    for key, name in (("cert", "web.crt"), ("key", "web.key"), ("client_ca", "ca.pem")):
        text += f"  {key}: |\n      {indented(folder / name)}\n"
    loaded = load(folder, text)
    assert loaded.context is not None
    assert loaded.context.verify_mode == ssl.CERT_REQUIRED
    assert loaded.context.cert_store_stats()["x509"] == 1
    secret = (folder / "web.key").read_text().splitlines()[1]
    assert secret not in repr(loaded) + repr(loaded.config)


def test_what_is_not_said_has_the_formats_defaults(folder: Path) -> None:
    """TLS 1.2 to 1.3, the server's preference, no client certificate, no user, no limit, no header."""
    loaded = load(folder, f"{TLS}}}\n")
    context = loaded.context
    assert context is not None
    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    assert context.verify_mode == ssl.CERT_NONE
    assert context.options & ssl.OP_CIPHER_SERVER_PREFERENCE
    assert load(folder, "{}\n").context is None
    assert loaded.config.basic_auth_users == {}
    assert loaded.config.http_server_config.headers.to_add() == {}
    assert loaded.config.rate_limit is None


def test_every_key_that_is_supported_has_its_effect(folder: Path) -> None:
    """Versions, suites in their order, preference and policy reach OpenSSL; names are brought into one form."""
    suites = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"
    loaded = load(
        folder,
        f"{TLS}, min_version: TLS12, max_version: TLS12, cipher_suites: [{suites}, TLS_AES_128_GCM_SHA256],\n"
        "  prefer_server_cipher_suites: false, curve_preferences: [X25519], client_ca_file: ca.pem,\n"
        '  client_auth_type: RequireAndVerifyClientCert, client_allowed_sans: [a.example, "0:0::1", a@b.example]}\n'
        'http_server_config: {http2: false, headers: {X-Frame-Options: deny, X-XSS-Protection: ""}}\n'
        f"basic_auth_users: {{watcher: {HASH}, 7: {HASH}}}\nrate_limit: {{interval: 100ms, burst: 20}}\n",
    )
    context, config = loaded.context, loaded.config
    assert context is not None
    assert context.maximum_version == ssl.TLSVersion.TLSv1_2
    below_13 = [c["name"] for c in context.get_ciphers() if c["protocol"] != "TLSv1.3"]
    assert below_13 == ["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-SHA"]
    assert not context.options & ssl.OP_CIPHER_SERVER_PREFERENCE
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert config.tls_server_config is not None
    assert config.tls_server_config.client_allowed_sans == ["a.example", "::1", "a@b.example"]
    assert config.http_server_config.headers.to_add() == {"X-Frame-Options": "deny"}
    assert sorted(config.basic_auth_users) == ["7", "watcher"]
    assert config.rate_limit is not None
    assert config.rate_limit.interval == pytest.approx(0.1)
    assert HASH not in repr(loaded) + repr(config)


def test_a_header_may_be_a_number(folder: Path) -> None:
    """`X-XSS-Protection: 0` is the usual value and needs no quotes."""
    loaded = load(folder, "http_server_config: {headers: {X-XSS-Protection: 0}}\n")
    assert loaded.config.http_server_config.headers.to_add() == {"X-XSS-Protection": "0"}


def test_only_the_named_curve_is_offered(folder: Path) -> None:
    """A client with another curve cannot connect."""
    loaded = load(folder, f"{TLS}, curve_preferences: [CurveP384]}}\n")
    assert loaded.context is not None
    for curve, meets in (("secp384r1", True), ("prime256v1", False)):
        client = ssl.create_default_context(cafile=folder / "ca.pem")
        client.set_ecdh_curve(curve)
        assert shake_hands(client, loaded.context) == meets


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> bool:
    """Whether the two find one another, in memory."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(back, there, server_hostname="127.0.0.1"),
        server.wrap_bio(there, back, server_side=True),
    ]
    done: set[int] = set()
    for _ in range(10):
        for number, side in enumerate(sides):
            try:
                side.do_handshake()
                done.add(number)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
    return len(done) == 2


def test_a_weak_certificate_is_told_as_one(folder: Path) -> None:
    """A key that OpenSSL refuses for its length is the certificate's fault, said in one line."""
    key = rsa.generate_private_key(65537, 1024)
    now = datetime(2026, 1, 1)
    builder = CertificateBuilder(Name([]), Name([]), key.public_key(), random_serial_number(), now, now.replace(2036))
    (folder / "web.crt").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    (folder / "web.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (line,) = problems(folder, f"{TLS}}}\n")
    assert line == (
        f"1: tls_server_config.cert_file: {folder}/web.crt is too weak for OpenSSL here (ee key too small): "
        "make a stronger one"
    )


def test_rsa_and_ecdsa_keys_are_taken(folder: Path) -> None:
    """Either kind, with its certificate."""
    Authority(folder, "other").pair("web", key_type=trustme.KeyType.RSA)
    assert load(folder, f"{TLS}}}\n").context is not None


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_no_content_is_a_traceback(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Arbitrary bytes are a web configuration or lines."""
    path = tmp_path_factory.mktemp("fuzz") / "web.yml"
    path.write_bytes(content)
    with contextlib.suppress(BudgetError):
        read_web_config(path).load()


def test_the_example_of_the_readme_is_in_order(folder: Path) -> None:
    """With a real hash and real certificates it loads as it stands."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    example = readme.split("### TLS and passwords")[1].split("```yaml\n")[1].split("```")[0]
    for name, stands_for in (("server.crt", "web.crt"), ("server.key", "web.key"), ("clients.pem", "ca.pem")):
        (folder / name).write_bytes((folder / stands_for).read_bytes())
    loaded = load(folder, example.replace("$2y$10$…", HASH))
    assert loaded.context is not None
    assert loaded.context.verify_mode == ssl.CERT_REQUIRED
    assert list(loaded.config.basic_auth_users) == ["prometheus"]


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    """No traceback, the reason in words."""
    with pytest.raises(BudgetError) as caught:
        read_web_config(tmp_path / "none.yml")
    assert str(caught.value) == f"{tmp_path}/none.yml: cannot be read: No such file or directory"
