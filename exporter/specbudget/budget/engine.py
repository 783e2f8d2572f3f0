"""The `engine` section: where it answers, how it was started, and the files that it writes."""

from __future__ import annotations

from typing import Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import field_validator, model_validator

from specbudget.budget.declared import ALL, SERVE, key
from specbudget.budget.section import Address, File, Folder, Section
from specbudget.budget.units import Duration, Measured, Size

EngineKind = Literal["sglang", "vllm", "tensorrt-llm"]


class Tls(Section):
    """TLS towards the engine; files are read again for each request."""

    ca_file: File | None = key(
        None,
        "Certificates that are trusted, and no others.",
        example="engine-ca.pem",
        without="the system's authorities are trusted",
    )
    cert_file: File | None = key(
        None, "The certificate that is shown to the engine; with key_file.", example="client.pem"
    )
    key_file: File | None = key(None, "Its private key; with cert_file.", example="client-key.pem")
    insecure_skip_verify: bool = key(False, "Take any certificate of the engine, whoever shows it.", example="false")

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file belong together: give both or neither")
        return self


def _has_port(parts: SplitResult) -> bool:
    """False for a port that is none; without one the scheme's holds."""
    try:
        return parts.port is None or parts.port > 0
    except ValueError:
        return False


def engine_address(value: str) -> str:
    """An engine's address without a slash at its end; raises ValueError, saying how one is written."""
    try:
        parts = urlsplit(value)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or not _has_port(parts):
        raise ValueError("write the engine's address as http://HOST:PORT or https://HOST:PORT")
    if parts.username or parts.password:
        raise ValueError("keep credentials out of the address: put the key in a file and name it api_key_file")
    if parts.query or parts.fragment:
        raise ValueError("write the address without ? and #")
    return value.rstrip("/")


class Engine(Section):
    """The engine beside which the sidecar runs, and how it was started."""

    kind: EngineKind = key("sglang", "Which engine it is. `serve` knows SGLang only.", example="sglang", read_by=ALL)
    url: Address = key(
        "http://127.0.0.1:30000",
        "Where it answers: scheme, host and port. The gate reads it if it answers.",
        example="http://127.0.0.1:30000",
    )
    version: str | None = key(
        None,
        "Its release, before rollout; the running engine's own word wins. In quotes where it could be a number.",
        example='"0.5.23"',
        without="what the running engine says",
    )
    args: str | list[str] | None = key(
        None,
        "Its launch arguments, as one text or a list of words, before rollout; the running engine's own word wins. "
        "No secret belongs here.",
        example='"--tp 4 --speculative-algorithm DSPARK --mem-fraction-static 0.85 --enable-linear-replayssm-spec '
        '--linear-replayssm-cache-len 32 --weight-loader-prefetch-checkpoints"',
        without="what the running engine says",
    )
    env: dict[str, str] = key(
        {},
        "Its environment, as far as it decides how the engine behaves. No secret belongs here.",
        example="{SGLANG_RAGGED_VERIFY_MODE: static}",
    )
    gpu_memory: Size | None = key(
        None, "Memory of one GPU, as on its label: pools are predicted from it.", example="141GiB"
    )
    free_before_load: Measured | None = key(
        None,
        "Memory that is free on one GPU before any weight is loaded, as the engine's log says: makes predictions "
        "tighter.",
        example="139.2GiB",
        without="estimated from gpu_memory",
    )
    api_key_file: File | None = key(
        None,
        "A file with the key of the engine's `--api-key` in one line; read again for each request.",
        example="/run/secrets/engine-key",
    )
    tls: Tls = Tls()
    poll_interval: Duration = key(
        5.0,
        "Time between two readings of the engine's metrics and loads, 1s to 300s.",
        example="5s",
        read_by=(SERVE,),
    )
    request_log: Folder | None = key(
        None,
        "The folder of SGLang's `--export-metrics-to-file-dir`: one record per finished request.",
        example="/var/log/engine/requests",
        without="no event of the SLO is known by request",
    )
    server_log: File | None = key(
        None,
        "The file with the engine's own output: start-up stages and batch reports.",
        example="/var/log/engine/server.log",
        without="no start is seen stage by stage",
    )

    @field_validator("url")
    @classmethod
    def _plain_url(cls, value: str) -> str:
        return engine_address(value)

    @field_validator("version", mode="before")
    @classmethod
    def _version_is_text(cls, value: object) -> object:
        if isinstance(value, int | float):
            raise ValueError(f'put the version in quotes, like "{value}", or it is read as a number')
        return value

    @field_validator("env", mode="before")
    @classmethod
    def _env_is_text(cls, value: object) -> object:
        if isinstance(value, dict):
            return {key: str(item) if isinstance(item, int | float) else item for key, item in value.items()}
        return value

    @field_validator("poll_interval")
    @classmethod
    def _not_too_often(cls, value: float) -> float:
        if not 1 <= value <= 300:
            raise ValueError("choose 1s to 300s: each poll costs the engine a rendering of its metrics")
        return value
