"""SGLang's /server_info: captured documents of both releases; what is secret in them never reaches us."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.scripted_engine import CAPTURED, READINGS

from specbudget.domain.observation import EngineFacts
from specbudget.sources.sglang.server_info import read_server_info

VERSIONS = ("0.5.18", "0.5.23")


def captured(version: str, name: str) -> EngineFacts:
    """The facts of a captured document."""
    return read_server_info((CAPTURED / version / f"server_info_v{version}_{name}.json").read_bytes())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "algorithm", "drafts"), [("dspark", "DSPARK", 8), ("dflash", "DFLASH", 16)])
def test_a_speculating_engine(version: str, name: str, algorithm: str, drafts: int) -> None:
    """Version, algorithm, verify window's parts, parallelism, page and limits are those of the document."""
    facts = captured(version, name)
    assert (facts.version, facts.algorithm, facts.speculates, facts.role) == (
        version,
        algorithm,
        True,
        "unified",
    )
    assert (facts.num_steps, facts.num_draft_tokens, facts.adaptive) == (1, drafts, False)
    assert (facts.tensor_parallel, facts.pipeline_parallel, facts.data_parallel) == (1, 1, 1)
    assert (facts.page_tokens, facts.max_running_requests, facts.decode_report_passes) == (64, 48, 40)
    assert facts.mem_fraction_static == 0.86
    assert facts.lifetime_lengths == (2.839236111111111,)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_engine_without_speculation(version: str) -> None:
    """An algorithm of null is known to be none; steps and drafts are unknown, not 0."""
    facts = captured(version, "nospec")
    assert (facts.algorithm, facts.speculates) == (None, False)
    assert (facts.num_steps, facts.num_draft_tokens) == (None, None)


@pytest.mark.parametrize("version", VERSIONS)
def test_before_the_first_report_there_is_no_lifetime_length(version: str) -> None:
    """A rank that has not reported yet has no length, which is not 0."""
    assert captured(version, "dspark_fresh_no_decode").lifetime_lengths == (None,)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_rank_has_its_own_lifetime_length(version: str) -> None:
    """Two data-parallel ranks are two entries."""
    facts = captured(version, "dspark_dp2")
    assert facts.lifetime_lengths == (2.839236111111111,) * 2
    assert facts.data_parallel == 2


@pytest.mark.parametrize(("name", "lengths"), [("missing", (None,)), ("dp2", (3.0, 1.4))])
def test_lifetime_lengths_by_rank(name: str, lengths: tuple[float | None, ...]) -> None:
    """Missing is unknown, and the worst of two ranks shows beside the other one."""
    facts = read_server_info((READINGS / "lifetime_length" / f"server_info_{name}.json").read_bytes())
    assert facts.lifetime_lengths == lengths


@pytest.mark.parametrize(
    ("mode", "role"), [("null", "unified"), ("prefill", "prefill"), ("decode", "decode"), ("new-mode", None)]
)
def test_the_role(mode: str, role: str | None) -> None:
    """SGLang writes the word null for an engine that does both; an unknown word is no role."""
    assert read_server_info(json.dumps({"disaggregation_mode": mode}).encode()).role == role


def test_an_empty_object_says_nothing() -> None:
    """An engine that leaves everything out speculates or not: it is unknown."""
    assert read_server_info(b"{}") == EngineFacts()


def test_a_runtime_override_shows_in_the_first_state_that_has_it() -> None:
    """The arguments at start stand at the top; the ones in force stand in the ranks' states."""
    document = {
        "speculative_num_steps": 3,
        "speculative_num_draft_tokens": 4,
        "internal_states": [{}, {"speculative_num_steps": 5, "speculative_num_draft_tokens": 6}],
    }
    facts = read_server_info(json.dumps(document).encode())
    assert (facts.num_steps, facts.num_draft_tokens) == (5, 6)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["dspark", "dspark_dp2", "nospec"])
def test_no_secret_of_the_document_is_in_the_facts(version: str, name: str) -> None:
    """Keys and the launch command stand in clear text in the document, at the top and in each state."""
    text = (CAPTURED / version / f"server_info_v{version}_{name}.json").read_text()
    assert text.count("sk-EXAMPLE") >= 2
    assert "sk-EXAMPLE" not in repr(captured(version, name))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"sk-EXAMPLE-secret"',
        b'{"tp_size": "sk-EXAMPLE-secret"}',
        b'{"api_key": "sk-EXAMPLE-secret',
    ],
    ids=["nothing", "a list", "a text", "a text for a number", "cut off"],
)
def test_the_error_of_a_bad_document_repeats_nothing_of_it(body: bytes) -> None:
    """The error names a key at most: what the document holds stays where it is."""
    with pytest.raises(msgspec.DecodeError) as caught:
        read_server_info(body)
    assert "EXAMPLE" not in str(caught.value)
