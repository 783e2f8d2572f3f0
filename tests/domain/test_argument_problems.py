"""What is wrong with launch arguments."""

import pytest

from specbudget.domain.argument_problems import argument_problems, keys_in
from specbudget.domain.finding import CheckResult

PASS, WARN, FAIL, UNKNOWN = CheckResult.PASS, CheckResult.WARN, CheckResult.FAIL, CheckResult.UNKNOWN


@pytest.mark.parametrize(
    "args",
    [
        "",
        "--tp 4 --speculative-algorithm NEXTN --mem-fraction-static 0.85",
        "--speculative-algorithm eagle3",
        "python -m sglang.launch_server --model-path m --trust-remote-code --port 1",
        "--chunked-prefill-size -1 --cpu-offload-gb 0 --dtype half",
        "--speculative-algo DFLASH --mem-fraction 0.8 --tp-size=2",
        "--tp $TP --tp 4",
    ],
)
def test_arguments_that_the_engine_takes(args: str) -> None:
    """Nothing is told of them, be they abbreviated or given twice."""
    assert argument_problems(args, "0.5.23") == ()


@pytest.mark.parametrize(
    ("args", "result", "words"),
    [
        ("--tp $TP", UNKNOWN, "--tp $TP is no whole number from 1"),
        ("--tp four", UNKNOWN, "--tp four"),
        ("--tp -2", UNKNOWN, "--tp -2"),
        ("--page-size 0", UNKNOWN, "--page-size 0"),
        ("--chunked-prefill-size -2", UNKNOWN, "no whole number from -1"),
        ("--mem-fraction-static abc", UNKNOWN, "--mem-fraction-static abc is no number"),
        ("--mem-fraction-static ${MEM}", UNKNOWN, "${MEM}"),
        ("--mem-fraction-static nan", UNKNOWN, "nan"),
        ("--mem-fraction-static 1.5", FAIL, "above 0 and below 1"),
        ("--mem-fraction-static 1", FAIL, "above 0 and below 1"),
        ("--mem-fraction-static 0", FAIL, "above 0 and below 1"),
        ("--mem-fraction-static=-0.5", FAIL, "above 0 and below 1"),
        ("--mem-fraction-static 0.999", WARN, "leaves 0.1%"),
        ("--mamba-full-memory-ratio -1", UNKNOWN, "is negative"),
        ("--config engine.yaml", UNKNOWN, "engine.yaml is not read"),
        ("--tp", FAIL, "--tp has no value"),
        ("--speculative-algorithm", FAIL, "has no value"),
        ("--speculative-algorithm ''", FAIL, "known are DSPARK"),
        ("--speculative-algorithm MEDUSA", FAIL, "SGLang refuses an unknown algorithm"),
        ("--speculative-algorithm EAGEL3", FAIL, "did you mean EAGLE3?"),
        ("--speculative-algorithm UNO", UNKNOWN, "whose KV is not known here"),
        ("--speculative-algorithm FROZEN_KV_MTP", UNKNOWN, "whose KV is not known here"),
        ("--speculative-algorithm $ALGO", UNKNOWN, "is a variable"),
        ("--speculative-algorithm NONE", UNKNOWN, "turns speculation off"),
        ("--speculative-draft 4", FAIL, "--speculative-draft may mean --speculative-draft-attention-backend"),
        ("--speculativ-algorithm DFLASH", FAIL, "did you mean --speculative-algorithm?"),
        ("--mem-fracton 0.8", FAIL, "did you mean --mem-fraction-static?"),
        ("--mem_fraction_static 0.8", FAIL, "did you mean --mem-fraction-static?"),
        ("--no-such-thing 1", FAIL, "--no-such-thing is no option of SGLang 0.5.23"),
        ("--dtype int4", UNKNOWN, "--dtype int4 is not known"),
    ],
)
def test_each_fault_is_told_with_its_option_and_value(args: str, result: CheckResult, words: str) -> None:
    """What cannot be read is not known, what the engine refuses fails, what is nearly an option is asked about."""
    (problem,) = argument_problems(args, "0.5.23")
    assert problem.result is result
    assert words in problem.message


@pytest.mark.parametrize("args", ["--api-key sk-secret", "--admin-api-key=sk-secret", "--api-k sk-secret"])
def test_a_key_is_told_of_and_not_repeated(args: str) -> None:
    """The message names the option and where the key belongs."""
    (problem,) = argument_problems(args, "0.5.23")
    assert problem.result is WARN
    assert "engine.api_key_file" in problem.message
    assert "sk-secret" not in problem.message


@pytest.mark.parametrize(
    ("args", "keys"),
    [
        ("--tp 1 --api-key sk", ("api-key",)),
        ("--admin-api-key=sk --api-k sk", ("admin-api-key", "api-k")),
        ("--tp 1 --served-model-name api-key", ()),
    ],
)
def test_keys_are_found(args: str, keys: tuple[str, ...]) -> None:
    """Abbreviated ones, too."""
    assert keys_in(args) == keys


def test_the_worst_is_told_first() -> None:
    """A refusal before what is not known before a warning."""
    told = argument_problems("--mem-fraction-static 0.99 --tp $TP --speculative-algorithm MEDUSA", "0.5.23")
    assert [problem.result for problem in told] == [FAIL, UNKNOWN, WARN]


def test_a_release_that_was_not_read_may_have_other_options() -> None:
    """A strange option may be new there; a nearly known one is still asked about."""
    assert argument_problems("--no-such-thing 1", "0.6.0") == ()
    (near,) = argument_problems("--speculativ-algorithm DFLASH", "0.6.0")
    assert near.result is WARN
    (several,) = argument_problems("--speculative-draft 4", "")
    assert several.result is WARN


def test_a_long_value_is_cut() -> None:
    """A message stays one line."""
    (problem,) = argument_problems(f"--tp {'9' * 500}", "0.5.23")
    assert len(problem.message) < 150
