"""The `engine` section: where it answers, how it was started, and the files that it writes."""

from __future__ import annotations

from typing import Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, field_validator, model_validator

from specbudget.budget.section import Section
from specbudget.budget.units import Duration, Measured, Size

EngineKind = Literal["sglang", "vllm", "tensorrt-llm"]


class Tls(Section):
    """TLS towards the engine."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    insecure_skip_verify: bool = False

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

    kind: EngineKind = "sglang"
    url: str = "http://127.0.0.1:30000"
    version: str | None = None
    args: str | list[str] | None = None
    env: dict[str, str] = Field(default_factory=dict)
    gpu_memory: Size | None = None
    free_before_load: Measured | None = None
    api_key_file: str | None = None
    tls: Tls = Tls()
    poll_interval: Duration = 5.0
    request_log: str | None = None
    server_log: str | None = None

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
