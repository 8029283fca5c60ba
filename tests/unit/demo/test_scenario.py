"""The decisions of the scenario; tests/docs/test_readme.py runs the whole of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rota.client import NewTopic
from rota.demo import scenario
from rota.demo.processes import Member
from rota.demo.scenario import Scenario, ScenarioFailed, member_name, records_read_once
from rota.demo.screen import State
from rota.testing import running_broker


class Silent:
    """A screen that shows nothing."""

    def show(self, state: State) -> None: ...


def member(partitions: list[int], *ranges: tuple[int, int, int]) -> Member:
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE, text=True)
    process.wait()
    made = Member("rota", process)
    made.reader.join()
    made.partitions, made.ranges = partitions, list(ranges)
    return made


@pytest.fixture
def demo_run(tmp_path: Path) -> Scenario:
    return Scenario(tmp_path, Silent(), ["rota", "rota", "rota"])


def test_members_of_one_client_are_numbered() -> None:
    clients = ["rota", "confluent", "rota", "rota"]
    assert [member_name(clients, position) for position in range(4)] == ["rota", "confluent", "rota-2", "rota-3"]


def test_a_record_that_two_members_read_counts_once() -> None:
    assert records_read_once([member([], (0, 0, 9)), member([], (0, 5, 14), (1, 0, 0))]) == 16


def test_partitions_are_shared_when_each_has_one_owner(demo_run: Scenario) -> None:
    demo_run.state.members = [member([0, 1, 2]), member([3, 4, 5])]
    assert demo_run.is_shared_by(2)
    assert not demo_run.is_shared_by(1)
    demo_run.state.members[1].partitions = [2, 3, 4, 5]
    assert not demo_run.is_shared_by(2), "partition 2 has two owners"
    demo_run.state.members[1].partitions = [3, 4]
    assert not demo_run.is_shared_by(2), "partition 5 has none"


def test_the_crash_waits_until_each_member_has_read_enough(demo_run: Scenario) -> None:
    demo_run.state.members = [member([0, 1, 2], (0, 0, scenario.READ_BEFORE_CRASH)), member([3, 4, 5], (3, 0, 1))]
    assert not demo_run.is_ready_for_crash()
    demo_run.state.members[1].ranges = [(3, 0, scenario.READ_BEFORE_CRASH)]
    assert demo_run.is_ready_for_crash()


def test_an_unread_record_is_missing(demo_run: Scenario) -> None:
    demo_run.state.members, demo_run.state.ends = [member([], (0, 0, 8))], {0: 10}
    assert demo_run.missing_records() == 1


async def test_a_chapter_that_is_not_reached_fails(demo_run: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario, "CHAPTER_S_MAX", -1.0)
    demo_run.broker.address = "127.0.0.1:9"
    with pytest.raises(ScenarioFailed, match="not reached within"):
        await demo_run.wait_until("Never", demo_run.admin(), lambda: False)


async def test_members_that_start_slowly_find_lines_to_read(demo_run: Scenario) -> None:
    with running_broker() as running:
        demo_run.broker.address = running.bootstrap_servers
        async with demo_run.admin() as admin:
            await admin.create_topics([NewTopic(scenario.TOPIC, scenario.PARTITIONS)])
            await demo_run.produce()
            for committed, sends in ((False, 1), (True, 2)):
                await demo_run.read_offsets(admin)
                demo_run.state.committed = dict(demo_run.state.ends) if committed else {}
                await demo_run.produce_if_all_is_read()
                await demo_run.read_offsets(admin)
                assert sum(demo_run.state.ends.values()) == sends * len(demo_run.text)


@pytest.mark.parametrize(
    ("failure", "code"),
    [(ScenarioFailed("a line is missing"), "FAILED: a line is missing"), (KeyboardInterrupt(), 130)],
)
def test_a_failure_is_the_exit_code(failure: BaseException, code: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(clients: list[str]) -> None:
        raise failure

    monkeypatch.setattr(scenario, "play", fail)
    with pytest.raises(SystemExit) as ended:
        scenario.main()
    assert ended.value.code == code
