"""The watch over an engine's starts: outcomes counted once, live ages on our own clock, kept across a restart."""

from __future__ import annotations

import csv
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from specbudget.catalog import sets
from specbudget.domain import stages
from specbudget.domain.stages import Stage, StageArtifact, StartBasis, StartOutcome
from specbudget.domain.start_events import Mark, StartEvent
from specbudget.serve.start_watch import ReadAt, StartWatch, local_epoch
from specbudget.sources.sglang.start_log import read_start_lines
from specbudget.sources.sglang.start_phases import read_phases

STARTS = Path(__file__).parent.parent / "fixtures" / "starts"
EPOCH, MONO = 1_800_000_000.0, 5_000.0
OK, OVER, FAILED, STUCK = StartOutcome.OK, StartOutcome.OVER_BUDGET, StartOutcome.FAILED, StartOutcome.STUCK


class Live:
    """An engine whose lines are read as they are written: `at(seconds, line)`, our clocks beside its log's."""

    def __init__(self, watch: StartWatch, *, ahead: float = 0.0) -> None:
        self.watch, self.ahead = watch, ahead

    def at(self, seconds: float, text: str, *, ranks: str = "") -> None:
        """One line of the log, `seconds` after the beginning."""
        moment = datetime.fromtimestamp(EPOCH + self.ahead + seconds, UTC)
        line = f"[{moment:%Y-%m-%d %H:%M:%S}{ranks}] {text}\n"
        found = read_start_lines(line.encode())
        self.watch.see(found.events, ReadAt(epoch=EPOCH + seconds, monotonic=MONO + seconds, live=True))

    def launch(self, seconds: float, *, skips: bool = False) -> None:
        """The arguments."""
        self.at(seconds, f"server_args={{'skip_server_warmup': {skips}}}")

    def ready(self, seconds: float) -> None:
        """The ready line."""
        self.at(seconds, "The server is fired up and ready to roll!")

    def outcomes(self, seconds: float) -> dict[StartOutcome, int]:
        """What there is to count."""
        return self.watch.outcomes(MONO + seconds)

    def latest(self, seconds: float):
        """The latest start."""
        view = self.watch.latest(MONO + seconds)
        assert view is not None
        return view


@pytest.mark.parametrize("name", ["Stage", "StageArtifact", "StartBasis", "StartKind", "StartOutcome"])
def test_the_labels_are_the_words_of_the_domain(name):
    """What /metrics may say of a start is exactly what the domain says."""
    assert [word.value for word in getattr(sets, name)] == [word.value for word in getattr(stages, name)]


# Cold start ------------------------------------------------------------------------------------------------------


def probes() -> dict[tuple[str, str], float]:
    """Seconds of each probe of a start whose health is good long before it generates."""
    with (STARTS / "generation_long_after_health.csv").open() as file:
        return {(row["probe"], row["status"]): float(row["t_s"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize("warm_up", [True, False], ids=["the server's own warm-up", "the first request"])
def test_a_cold_start_ends_at_the_first_generation_not_at_the_first_success(warm_up):
    """Port up at 60 s, healthy at 180 s, generating at 305 s: 305 s, over a budget of 240 s that 180 would pass."""
    seen = probes()
    engine = Live(StartWatch(budget_seconds=240.0, records=True))
    engine.launch(0.0, skips=not warm_up)
    engine.at(seen["/v1/models", "200"], "INFO:     Application startup complete.")
    first = seen["/generate", "200"]
    if warm_up:
        engine.at(first, 'INFO:     127.0.0.1:40102 - "POST /generate HTTP/1.1" 200 OK')
        engine.ready(first)
    else:
        healthy = seen["/health", "200"]
        engine.ready(healthy)
        assert engine.outcomes(200.0) == {}
        assert engine.latest(200.0).running_seconds == healthy
        # asked for at once, answered after two minutes: the engine was not waiting for traffic
        engine.watch.see_record(EPOCH + first, first - healthy, MONO + first)
    view = engine.latest(400.0)
    assert view.start.cold_start_seconds == 305.0
    assert view.start.stage(Stage.FIRST_GENERATION).offset == 305.0
    assert view.start.stage(Stage.WARMUP).offset == 60.0
    assert (view.over_budget, view.running_seconds) == (True, None)
    assert engine.outcomes(400.0) == {OVER: 1}


def test_waiting_for_traffic_is_not_counted():
    """Ready after 40 s, the first request an hour later and answered within 2 s: 42 s."""
    engine = Live(StartWatch(budget_seconds=240.0, records=True))
    engine.launch(0.0, skips=True)
    engine.ready(40.0)
    assert engine.latest(3000.0).running_seconds == 40.0
    assert engine.outcomes(3000.0) == {}
    engine.watch.see_record(EPOCH + 3642.0, 2.0, MONO + 3642.0)
    assert engine.latest(3700.0).start.cold_start_seconds == pytest.approx(42.0)
    assert engine.outcomes(3700.0) == {OK: 1}


def test_a_record_read_before_the_ready_line_still_counts():
    """Two files are read at different moments: the order of reading does not lose the first request."""
    engine = Live(StartWatch(records=True))
    engine.launch(0.0, skips=True)
    engine.watch.see_record(EPOCH - 9.0, 1.0, MONO + 40.0)
    engine.watch.see_record(EPOCH + 43.0, 2.0, MONO + 43.0)
    engine.ready(40.0)
    assert engine.latest(50.0).start.cold_start_seconds == pytest.approx(42.0)


# Outcomes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "outcome"), [(None, OK), (60.0, OK), (59.0, OVER)], ids=["no budget", "on the budget", "over it"]
)
def test_a_start_ends_once(budget, outcome):
    """One increment for one start, however often it is asked and whatever the log says afterwards."""
    engine = Live(StartWatch(budget_seconds=budget))
    engine.launch(0.0)
    engine.ready(60.0)
    engine.at(70.0, 'INFO:     10.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK')
    engine.at(71.0, "Received sigquit from a child process. It usually means the child failed.")
    assert engine.outcomes(72.0) == {outcome: 1}
    assert engine.outcomes(7200.0) == {}
    assert engine.latest(7200.0).start.failed is False


def test_attempts_without_a_completion_are_counted_and_no_success():
    """Three launches 900 s apart, none ready: 3 attempts, 2100 s since the first, 300 s in this one, 2 failed."""
    engine = Live(StartWatch(budget_seconds=1000.0))
    for line in (STARTS / "attempts.jsonl").read_text().splitlines():
        engine.launch(json.loads(line)["t"])
    now = float((STARTS / "attempts.now.txt").read_text())
    assert engine.watch.attempts == 3
    assert engine.watch.trying_seconds(MONO + now) == 2100.0
    view = engine.latest(now)
    assert (view.running_seconds, view.start.cold_start_seconds) == (300.0, None)
    assert engine.outcomes(now) == {FAILED: 2}


def test_attempts_that_are_read_afterwards_are_told_by_the_log():
    """The same three attempts in a log that is read at once, 300 s after its last line."""
    launches = [json.loads(line)["t"] for line in (STARTS / "attempts.jsonl").read_text().splitlines()]
    watch = StartWatch()
    events = [StartEvent(mark=Mark.LAUNCH, at=float(t)) for t in launches]
    watch.see(events, ReadAt(epoch=EPOCH, monotonic=MONO, quiet=300.0))
    assert (watch.attempts, watch.trying_seconds(MONO)) == (3, 2100.0)
    assert watch.latest(MONO).running_seconds == 300.0


def test_an_engine_that_says_that_it_failed_is_counted_at_once_and_once():
    """The failing line ends the attempt; the next launch does not count it again."""
    engine = Live(StartWatch())
    engine.launch(0.0)
    engine.at(10.0, "Scheduler hit an exception: Traceback (most recent call last):")
    engine.at(10.0, "Received sigquit from a child process. It usually means the child failed.")
    assert engine.outcomes(11.0) == {FAILED: 1}
    assert engine.latest(20.0).running_seconds is None
    engine.launch(30.0)
    assert engine.outcomes(31.0) == {}
    engine.ready(60.0)
    assert engine.outcomes(61.0) == {OK: 1}
    assert (engine.latest(70.0).start.cold_start_seconds, engine.watch.attempts) == (30.0, 0)


def test_a_ready_engine_that_nobody_asked_anything_has_not_failed():
    """Restarted without one request: it was ready within its budget."""
    engine = Live(StartWatch(budget_seconds=50.0, records=True))
    engine.launch(0.0, skips=True)
    engine.ready(40.0)
    engine.launch(500.0)
    assert engine.outcomes(501.0) == {OK: 1}


def test_a_log_that_begins_at_the_ready_line_is_no_outcome():
    """How long the start took is not known: it is counted neither as good nor as over budget."""
    engine = Live(StartWatch(budget_seconds=50.0))
    engine.ready(0.0)
    assert engine.outcomes(1.0) == {}
    assert engine.latest(1.0).start.cold_start_seconds is None
    engine.launch(100.0)
    assert engine.outcomes(101.0) == {}


def test_a_hot_reload_is_no_start():
    """Weights swapped in a live process change nothing and count nothing."""
    engine = Live(StartWatch())
    engine.launch(0.0)
    engine.ready(60.0)
    before = engine.latest(100.0).start
    assert engine.outcomes(100.0) == {OK: 1}
    engine.at(900.0, "Update engine weights online from disk begin. avail mem=1.00 GB", ranks=" TP0")
    engine.at(912.0, "Update weights end.", ranks=" TP0")
    assert engine.outcomes(913.0) == {}
    assert engine.latest(913.0).start == before


# Live ages -------------------------------------------------------------------------------------------------------


def silent_start() -> tuple[bytes, float]:
    """A log that ends with its load, and how long after its first line it is looked at."""
    data = (STARTS / "silent_after_load.log").read_bytes()
    now = datetime.fromisoformat((STARTS / "silent_after_load.now.txt").read_text().strip()).replace(tzinfo=UTC)
    return data, now.timestamp() - read_start_lines(data).events[0].at


def test_a_silent_start_is_stuck_once_and_goes_on_running():
    """Load done after 360 s, then nothing for 1500 s: stuck at a limit of 600 s, 1865 s of cold start so far."""
    data, now = silent_start()
    watch = StartWatch(budget_seconds=90.0, stuck_after=600.0)
    for event in read_start_lines(data).events:
        gone = event.at - read_start_lines(data).events[0].at
        watch.see([event], ReadAt(epoch=EPOCH + gone, monotonic=MONO + gone, live=True))
    assert watch.outcomes(MONO + 965.0) == {}
    assert watch.latest(MONO + 965.0).stuck is False
    assert watch.outcomes(MONO + 966.0) == {STUCK: 1}
    assert watch.outcomes(MONO + now) == {}
    view = watch.latest(MONO + now)
    assert (view.open_seconds, view.running_seconds, view.silent_seconds) == (1500.0, 1865.0, 1500.0)
    assert (view.start.open_stage.stage, view.stuck, view.over_budget) == (Stage.POST_LOAD, True, True)
    assert view.start.stage(Stage.LOAD, StageArtifact.TARGET).seconds == 360.0


def test_a_silent_start_that_is_read_late_is_as_old_as_its_file():
    """First read 25 minutes after its last line: the same ages, from how long the file was quiet."""
    data, now = silent_start()
    watch = StartWatch()
    watch.see(read_start_lines(data).events, ReadAt(epoch=EPOCH, monotonic=MONO, quiet=1500.0))
    view = watch.latest(MONO)
    assert (view.open_seconds, view.running_seconds, view.stuck) == (1500.0, now, True)
    assert watch.outcomes(MONO) == {STUCK: 1}


def test_a_progress_bar_is_progress_while_loading():
    """The log grows without a complete line: a load of an hour that goes on is not stuck."""
    engine = Live(StartWatch(stuck_after=600.0))
    engine.launch(0.0)
    engine.at(10.0, "Load weight begin. avail mem=78.00 GB", ranks=" TP0")
    for second in range(60, 3600, 60):
        engine.watch.see_growth(MONO + second)
        assert engine.outcomes(second) == {}
    assert engine.outcomes(4200.0) == {STUCK: 1}


def test_probes_of_a_hanging_warm_up_are_no_progress():
    """Once HTTP is up the log grows by access lines: only start-up lines are progress."""
    engine = Live(StartWatch(stuck_after=600.0))
    engine.launch(0.0)
    engine.at(60.0, "INFO:     Application startup complete.")
    for second in range(70, 700, 10):
        engine.watch.see_growth(MONO + second)
    assert engine.outcomes(700.0) == {STUCK: 1}
    assert engine.latest(700.0).start.open_stage.stage is Stage.WARMUP


def test_a_stuck_start_that_ends_after_all_counts_how_it_ended():
    """Stuck is said once; the end is said as well."""
    engine = Live(StartWatch(budget_seconds=100.0, stuck_after=600.0))
    engine.launch(0.0)
    assert engine.outcomes(700.0) == {STUCK: 1}
    engine.at(705.0, "Load weight begin. avail mem=78.00 GB", ranks=" TP0")
    assert engine.outcomes(2000.0) == {}
    engine.ready(2100.0)
    assert engine.outcomes(2101.0) == {OVER: 1}


def test_a_host_clock_that_is_ahead_makes_no_negative_age():
    """The engine's clock is 250 s ahead: 200 s by its own log, the skew said once, ages on our clock."""
    launch, ready = read_start_lines((STARTS / "host_clock_ahead.log").read_bytes()).events
    text = (STARTS / "host_clock_ahead.now.txt").read_text()
    read = datetime.fromisoformat(text[:19]).replace(tzinfo=UTC).timestamp()
    watch = StartWatch()
    watch.see([launch], ReadAt(epoch=read - 200.0, monotonic=MONO - 200.0, live=True))
    watch.see([ready], ReadAt(epoch=read, monotonic=MONO, live=True))
    assert watch.skew_seconds == 250.0
    assert watch.latest(MONO + 7.0).start.cold_start_seconds == 200.0
    assert watch.since_ready(MONO + 7.0) == 7.0
    assert watch.since_ready(MONO - 1.0) == 0.0
    assert watch.latest(MONO + 7.0).started_at == read - 200.0


@pytest.mark.parametrize("hours", [-8.0, -3.5, 5.75, 13.0])
def test_zones_are_no_skew(hours):
    """The log's zone is unknown and no part of the skew: quarters of an hour are left out."""
    engine = Live(StartWatch(), ahead=hours * 3600 + 3.0)
    engine.launch(0.0)
    engine.ready(30.0)
    assert engine.watch.skew_seconds == pytest.approx(3.0)
    view = engine.latest(40.0)
    assert view.start.cold_start_seconds == 30.0
    assert view.started_at == EPOCH


def test_an_old_start_is_placed_by_the_hosts_zone():
    """A start that was read afterwards began when its lines say, in the zone of this host."""
    at = datetime(2026, 7, 4, 10, tzinfo=UTC).timestamp()
    watch = StartWatch()
    watch.see(
        [StartEvent(mark=Mark.LAUNCH, at=at), StartEvent(mark=Mark.FIRED_UP, at=at + 30)],
        ReadAt(epoch=at + 1e6, monotonic=MONO),
    )
    assert watch.latest(MONO).started_at == time.mktime((2026, 7, 4, 10, 0, 0, 0, 0, -1)) == local_epoch(at)
    assert watch.skew_seconds is None


def test_the_process_table_knows_an_earlier_start():
    """The process began 14 s before its first line, whatever the log's zone."""
    engine = Live(StartWatch(), ahead=5.75 * 3600)
    engine.launch(0.0)
    engine.watch.see_process(EPOCH - 14.0)
    engine.ready(30.0)
    view = engine.latest(40.0)
    assert (view.start.basis, view.start.cold_start_seconds) == (StartBasis.PID_NAMESPACE, 44.0)
    assert view.started_at == EPOCH - 14.0
    engine.launch(600.0)
    assert engine.latest(601.0).start.basis is StartBasis.LAUNCH


def test_a_process_that_seems_younger_than_its_first_line_ran_no_time_before_it():
    """Log times are cut to whole seconds."""
    engine = Live(StartWatch())
    engine.launch(0.0)
    engine.watch.see_process(EPOCH + 0.6)
    engine.ready(30.0)
    assert engine.latest(40.0).start.cold_start_seconds == 30.0


# Without a log ---------------------------------------------------------------------------------------------------


def test_nothing_seen_is_nothing_said():
    """No log, no phases: no start."""
    assert StartWatch().latest(MONO) is None
    watch = StartWatch()
    watch.see_phases(read_phases(b'sglang:weight_load_duration_seconds{source="disk"} 12\n'))
    assert watch.latest(MONO) is None


def test_metrics_alone_tell_phases_but_no_cold_start():
    """221 s and an unmeasured load: the weights are unknown, not 0 s; the cold start is unknown."""
    watch = StartWatch()
    watch.see_phases(read_phases((STARTS / "phases_before_0.5.18.prom").read_bytes()))
    start = watch.latest(MONO).start
    assert (start.phases.engine, start.phases.load) == (221.0, None)
    assert [(stage.stage, stage.offset, stage.seconds) for stage in start.stages] == [(Stage.READY, 221.0, None)]
    assert (start.cold_start_seconds, start.basis) == (None, None)
    watch.see_phases(read_phases((STARTS / "phases_by_label.prom").read_bytes()))
    start = watch.latest(MONO).start
    assert start.stage(Stage.LOAD, StageArtifact.BOTH).seconds == 140.0
    assert start.stage(Stage.GRAPH_CAPTURE, StageArtifact.BOTH).seconds == 35.0
    assert start.phases.hot_reload == 12.0
    assert watch.outcomes(MONO) == {}


def test_without_a_log_a_start_is_counted_back_from_coming_up():
    """Seen down, then up: the engine's own 221 s lie before, the first answer 4 s after."""
    watch = StartWatch(budget_seconds=224.0, records=True)
    watch.see_engine(answers=False, epoch=EPOCH)
    watch.see_engine(answers=True, epoch=EPOCH + 300.0)
    watch.see_phases(read_phases((STARTS / "phases_by_label.prom").read_bytes()))
    assert watch.latest(MONO).running_seconds == 221.0
    watch.see_record(EPOCH + 304.0, 4.0, MONO)
    view = watch.latest(MONO)
    assert (view.start.basis, view.start.cold_start_seconds) == (StartBasis.OBSERVED, 225.0)
    assert view.started_at == EPOCH + 79.0
    assert view.start.stage(Stage.READY).offset == 221.0
    assert view.start.stage(Stage.FIRST_GENERATION).offset == 225.0
    assert watch.outcomes(MONO) == {OVER: 1}
    watch.see_engine(answers=True, epoch=EPOCH + 310.0)
    assert watch.outcomes(MONO) == {}


def test_an_engine_that_was_up_all_the_time_was_not_seen_to_start():
    """The first look tells of no start."""
    watch = StartWatch()
    watch.see_engine(answers=True, epoch=EPOCH)
    watch.see_phases(read_phases((STARTS / "phases_by_label.prom").read_bytes()))
    assert watch.latest(MONO).start.basis is None
    assert watch.outcomes(MONO) == {}


def test_phases_of_metrics_complete_a_log_of_few_words():
    """A log without load lines: the load of both models is the engine's own."""
    engine = Live(StartWatch())
    engine.launch(0.0)
    engine.watch.see_phases(read_phases((STARTS / "phases_by_label.prom").read_bytes()))
    # while a start goes on, metrics that are still there are those of the process before
    assert engine.latest(1.0).start.stages == ()
    engine.ready(230.0)
    assert engine.latest(231.0).start.stage(Stage.LOAD).seconds == 140.0


# Keeping ---------------------------------------------------------------------------------------------------------


def again(watch: StartWatch, seconds: float, *, away: float = 0.0) -> StartWatch:
    """The watch after a restart of the sidecar, through JSON, with another monotonic clock."""
    kept = json.loads(json.dumps(watch.dump(epoch=EPOCH + seconds, monotonic=MONO + seconds)))
    fresh = StartWatch(budget_seconds=watch.budget_seconds, records=watch.records, stuck_after=watch.stuck_after)
    fresh.load(kept, epoch=EPOCH + seconds + away, monotonic=MONO + seconds + away)
    return fresh


def test_a_restart_of_the_sidecar_neither_recounts_nor_loses_a_start():
    """Restarted after every line of two starts: the same counts and the same numbers as without."""
    lines = [
        (0.0, "server_args={'skip_server_warmup': False}", ""),
        (10.0, "Load weight begin. avail mem=78.00 GB", " TP0"),
        (40.0, "Load weight end. elapsed=30.00 s, type=A, avail mem=46.00 GB, mem usage=32.00 GB.", " TP0"),
        (60.0, "INFO:     Application startup complete.", ""),
        (70.0, 'INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK', ""),
        (71.0, "The server is fired up and ready to roll!", ""),
        (500.0, "server_args={'skip_server_warmup': False}", ""),
        (520.0, "The server is fired up and ready to roll!", ""),
    ]
    plain, restarted = Live(StartWatch()), Live(StartWatch())
    counts: dict[str, int] = {}
    for seconds, text, ranks in lines:
        for engine in (plain, restarted):
            engine.at(seconds, text, ranks=ranks)
        restarted.watch = again(restarted.watch, seconds)
        for outcome, count in restarted.outcomes(seconds).items():
            counts[outcome] = counts.get(outcome, 0) + count
        assert restarted.latest(seconds).start == plain.latest(seconds).start
        assert restarted.latest(seconds + 3).running_seconds == plain.latest(seconds + 3).running_seconds
        assert restarted.watch.attempts == plain.watch.attempts
    assert counts == {OK: 2} == plain.outcomes(600.0)


def test_outcomes_that_nobody_took_are_kept():
    """What was not yet added to the counters is there after the restart."""
    engine = Live(StartWatch())
    engine.launch(0.0)
    engine.ready(60.0)
    assert again(engine.watch, 61.0).outcomes(MONO + 61.0) == {OK: 1}


def test_time_without_the_sidecar_is_silence():
    """Away for 1000 s in the middle of a start: it is stuck, once, and as old as it is."""
    engine = Live(StartWatch(stuck_after=600.0))
    engine.launch(0.0)
    watch = again(engine.watch, 100.0, away=1000.0)
    assert watch.latest(MONO + 1100.0).running_seconds == 1100.0
    assert watch.outcomes(MONO + 1100.0) == {STUCK: 1}
    restarted = StartWatch(stuck_after=600.0)
    restarted.load(watch.dump(epoch=EPOCH, monotonic=MONO + 1100.0), epoch=EPOCH, monotonic=9.0)
    assert restarted.outcomes(10.0) == {}
    assert restarted.trying_seconds(9.0) == 1100.0


def test_answers_are_wanted_only_until_the_first():
    """An engine under traffic is not read line by line for ever."""
    engine = Live(StartWatch())
    assert engine.watch.wants_answers
    engine.launch(0.0)
    assert engine.watch.wants_answers
    engine.at(60.0, 'INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK')
    assert not engine.watch.wants_answers
    engine.launch(100.0)
    assert engine.watch.wants_answers


def test_an_answer_alone_begins_no_start():
    """A log that goes on in the middle of serving tells of no start."""
    engine = Live(StartWatch())
    engine.at(0.0, 'INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK')
    engine.at(1.0, "Received sigquit from a child process. It usually means the child failed.")
    assert engine.watch.latest(MONO) is None
    assert engine.outcomes(2.0) == {}
