"""Whatever budget, configs and arguments say, the gate answers with five lines and never with a traceback."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.check.plans import (
    BUDGET,
    DFLASH,
    EAGLE3,
    TARGET,
    PlanFolder,
    dflash_tensors,
    target_tensors,
    write_checkpoint,
)

from specbudget.catalog.lines import LINES
from specbudget.check.gather import gather
from specbudget.check.output.as_json import render_json
from specbudget.check.output.as_junit import render_junit
from specbudget.check.output.as_markdown import render_markdown
from specbudget.check.output.explain import explain
from specbudget.check.report import TEXTS, judge_plan
from specbudget.cli import main
from specbudget.domain.finding import CheckResult

ALWAYS = {
    "artifacts.target_parameters",
    "artifacts.drafter_parameters",
    "kv.target_bytes_per_token",
    "kv.drafter_bytes_per_token",
    "kv.drafter_need_bytes",
    "kv.drafter_allocated_bytes",
    "kv.drafter_cost_tokens",
    "acceptance.window",
}
"""Ids that are told of every plan, budgeted or not."""

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 1 << 70),
    st.floats(),
    st.text(max_size=12),
    st.lists(st.integers(-3, 100), max_size=4),
    st.just({}),
)

NUMBERS = st.sampled_from(
    ["0", "1", "2", "3", "4", "8", "64", "0.5", "0.9", "1.5", "-1", "nan", "inf", "1e400", "", "x"]
)

FLAGS = st.sampled_from(
    [
        *("--tp", "--pp", "--dp", "--enable-dp-attention", "--page-size", "--mem-fraction-static", "--dcp-size"),
        *("--speculative-num-steps", "--speculative-eagle-topk", "--speculative-num-draft-tokens"),
        *("--speculative-draft-window-size", "--speculative-adaptive", "--speculative-dspark-block-size"),
        *("--kv-cache-dtype fp8_e4m3", "--kv-cache-dtype fp4_e2m1", "--kv-cache-dtype", "--max-running-requests"),
        *("--max-total-tokens", "--max-mamba-cache-size", "--mamba-full-memory-ratio", "--context-length"),
        *("--enable-linear-replayssm-spec", "--linear-replayssm-cache-len", "--disable-radix-cache"),
        *("--speculative-algorithm DSPARK", "--speculative-algorithm EAGLE", "--speculative-algorithm NGRAM"),
        *("--speculative-algorithm STANDALONE", "--speculative-algorithm NEXTN", "--speculative-algorithm X"),
        *("--speculative-draft-kv-cache-dtype bfloat16", "--enable-hisparse", "--moe-a2a-backend deepep"),
    ]
)

ARGUMENTS = st.lists(st.builds("{} {}".format, FLAGS, NUMBERS) | st.text(max_size=20), max_size=8).map(" ".join)

BUDGETS = st.fixed_dictionaries(
    {},
    optional={
        "artifacts": st.fixed_dictionaries({}, optional={"target": st.sampled_from(["1B", "1MiB", "1TiB"])}),
        "kv": st.fixed_dictionaries(
            {},
            optional={
                "concurrency": st.integers(1, 1 << 40),
                "tokens_per_request": st.integers(1, 1 << 40),
                "min_target_tokens": st.integers(1, 1 << 40),
                "target": st.sampled_from(["1B", "600MiB", "1TiB"]),
                "drafter": st.sampled_from(["1B", "160MiB", "1TiB"]),
            },
        ),
        "acceptance": st.fixed_dictionaries(
            {},
            optional={
                "target_length": st.floats(1, 1024),
                "objective": st.floats(0.01, 0.999999),
                "break_even": st.one_of(
                    st.floats(1, 1024),
                    st.just([{"running": 1, "length": 1.5}, {"running": 64, "length": 3.5}]),
                    st.fixed_dictionaries({"length": st.floats(1, 9), "speedup": st.floats(1e-300, 1e300)}),
                ),
            },
        ),
        "staging": st.fixed_dictionaries(
            {},
            optional={
                "cold_start": st.sampled_from(["1ms", "90s", "10h"]),
                "mode": st.sampled_from(["serial", "prefetch", "overlap"]),
                "storage_bandwidth": st.sampled_from(["1B/s", "2GiB/s"]),
                "readers": st.integers(1, 1 << 40),
                "probe_budget": st.sampled_from(["1s", "1h"]),
                "warmup": st.just("required"),
                "order": st.sampled_from([["target", "drafter"], ["drafter", "target"]]),
            },
        ),
    },
)

KEYS = sorted({*TARGET, *DFLASH, *EAGLE3, "kv_lora_rank", "qk_rope_head_dim", "layer_types", "quantization_config"})
CONFIGS = st.dictionaries(st.sampled_from(KEYS), ODD, max_size=3)


@settings(max_examples=120, deadline=None)
@given(
    lines=BUDGETS,
    args=ARGUMENTS,
    target=CONFIGS,
    drafter=CONFIGS,
    algorithm=st.sampled_from([None, "dspark", "dflash", "eagle", "eagle3", "mtp", "standalone", "ngram"]),
    version=st.sampled_from([None, "0.5.18", "0.5.23", "0.6.0", "x"]),
    kind=st.sampled_from(["sglang", "sglang", "sglang", "vllm", "tensorrt-llm"]),
    weights=st.booleans(),
    paths=st.sampled_from([("target", "drafter"), ("target", None), (None, "drafter"), ("nowhere", "target")]),
)
def test_every_plan_is_judged_on_five_lines(
    lines: dict[str, Any],
    args: str,
    target: dict[str, Any],
    drafter: dict[str, Any],
    algorithm: str | None,
    version: str | None,
    kind: str,
    weights: bool,
    paths: tuple[str | None, str | None],
) -> None:
    """Five lines, the stable ids, finite numbers, and every form and explanation can be made of them."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_checkpoint(folder / "target", {**TARGET, **target}, target_tensors() if weights else None)
        write_checkpoint(folder / "drafter", {**DFLASH, **drafter}, dflash_tensors() if weights else None)
        engine = {**BUDGET["engine"], "args": args, "kind": kind, "version": version}
        document = {
            "service": "chat",
            "engine": {key: value for key, value in engine.items() if value is not None},
            "target": {} if paths[0] is None else {"path": paths[0]},
            "drafter": {
                **({} if paths[1] is None else {"path": paths[1]}),
                **({} if algorithm is None else {"algorithm": algorithm}),
            },
            "budget": lines,
        }
        (folder / "budget.yaml").write_text(json.dumps(document))
        plan = gather(folder / "budget.yaml")
        report = judge_plan(plan)
        assert [line.line for line in report.lines] == list(LINES)
        found = [finding.id for finding in report.findings]
        assert set(found) >= ALWAYS
        assert len(found) == len(set(found))
        assert set(found) <= set(TEXTS)
        assert all(finding.message for finding in report.findings if finding.result is not CheckResult.PASS)
        json.loads(render_json(report), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
        assert render_markdown(report)
        assert render_junit(report)
        assert all(explain(wanted, plan, report) for wanted in TEXTS)


@settings(max_examples=60, deadline=None)
@given(args=st.text(max_size=60) | st.lists(st.text(max_size=20), max_size=5))
def test_no_argument_of_the_engine_is_a_traceback(args: str | list[str]) -> None:
    """Quotes left open, control characters, digits of other scripts: the gate still says a verdict."""
    with tempfile.TemporaryDirectory() as place:
        assert PlanFolder(Path(place)).judge(engine__args=args).report.verdict in CheckResult


@pytest.mark.parametrize(
    "args",
    ["--tp ٣", "--page-size ²", "--tp 99999999999999999999", "--mem-fraction-static -3", "--mem-fraction-static 1e-320",
     "--speculative-num-draft-tokens 0", "--page-size 0", "--tp 0 --dp 0", "'", "--", "--=3", "--max-total-tokens 1"],
)  # fmt: skip
def test_odd_numbers_in_the_arguments_are_told_of_not_raised(
    plans: PlanFolder, args: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command ends with one of its four exit codes and prints a verdict."""
    file = plans.write(engine__args=f"--mem-fraction-static 0.8 --speculative-algorithm DFLASH {args}")
    assert main(["check", "--budget", str(file)]) in (0, 1, 3)
    assert "specbudget check chat" in capsys.readouterr().out
