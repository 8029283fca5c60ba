"""What each broker process of `--brokers` is told; that they run is in tests/cluster/test_supervisor.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import structlog

from rota.coordinator.admin.options import OptionsRefused, ServeOptions, parse_plain
from rota.coordinator.admin.supervisor import (
    BrokerProcess,
    CannotSupervise,
    _folder,
    _warn_of_brokers_not_started,
    broker_processes,
)
from rota.coordinator.config.broker import BrokerConfig


def processes(*settings: str, brokers: int = 3, memory: bool = False) -> list[BrokerProcess]:
    options = ServeOptions(data=None if memory else "d", memory=memory, settings=settings, brokers=brokers)
    return broker_processes(options, options.broker_config(), "/store")


def config_of(process: BrokerProcess) -> BrokerConfig:
    """The settings that the process reads from its command line."""
    options = parse_plain([*process._arguments, "--set", f"listeners={','.join(map(str, process._listens))}"])
    assert options is not None
    assert options.store == "/store"
    return options.broker_config()


def test_ids_ports_and_folders_follow_each_other() -> None:
    listeners = "listeners=INSIDE://127.0.0.1:9092,OUTSIDE://127.0.0.1:19092"
    protocols = "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"
    advertised = "advertised.listeners=INSIDE://a:9092,OUTSIDE://b:19092"
    configs = list(
        map(
            config_of,
            processes(
                listeners, protocols, advertised, "node.id=5", "rota.swim.port=7000", "rota.http.listener=[::1]:8080"
            ),
        )
    )
    assert [config.node_id for config in configs] == [5, 6, 7]
    assert [config.log_dirs[0] for config in configs] == ["d/broker-5", "d/broker-6", "d/broker-7"]
    assert [[each.port for each in config.listens] for config in configs] == [
        [9092, 19092],
        [9093, 19093],
        [9094, 19094],
    ]
    assert [str(config.advertises[0]) for config in configs] == [
        "INSIDE://a:9092",
        "INSIDE://a:9093",
        "INSIDE://a:9094",
    ]
    assert [config.rota_swim_port for config in configs] == [7000, 7001, 7002]
    assert [config.http.port for config in configs if config.http is not None] == [8080, 8081, 8082]


def test_the_older_name_of_the_id_follows_it() -> None:
    assert [config_of(process).node_id for process in processes("broker.id=3")] == [3, 4, 5]


def test_other_settings_are_those_of_the_supervisor() -> None:
    for config in map(config_of, processes("num.partitions=9", "listeners=PLAINTEXT://127.0.0.1:0", memory=True)):
        assert (config.num_partitions, config.listens[0].port) == (9, 0)
        assert "log.dirs" not in config.properties


def test_the_environment_is_that_of_the_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_NUM_PARTITIONS", "7")
    options = ServeOptions(memory=True, brokers=2, environment=True)
    started = broker_processes(options, options.broker_config(), "/store")
    assert [config_of(process).num_partitions for process in started] == [7, 7]


@pytest.mark.parametrize(("brokers", "replicas"), [(2, 2), (5, 3)])
def test_the_offsets_topic_has_one_replica_per_broker_up_to_three(brokers: int, replicas: int) -> None:
    assert {config_of(process).offsets_topic_replication_factor for process in processes(brokers=brokers)} == {replicas}


def test_settings_that_several_brokers_cannot_share_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionsRefused, match=r"zookeeper\.connect"):
        processes("zookeeper.connect=localhost:2181")
    with pytest.raises(OptionsRefused, match="share ports"):
        processes(
            "listeners=A://127.0.0.1:9092,B://127.0.0.1:9093", "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT"
        )
    with pytest.raises(OptionsRefused, match="from 1 to"):
        ServeOptions(brokers=0).check()
    (tmp_path / "meta.properties").write_text("")
    with pytest.raises(CannotSupervise, match="of a single broker"), _folder(BrokerConfig({"log.dirs": str(tmp_path)})):
        raise AssertionError("it was not refused")


def test_one_supervisor_at_a_time_has_a_folder(tmp_path: Path) -> None:
    config = BrokerConfig({"log.dirs": str(tmp_path / "d")})
    with _folder(config) as journal:
        assert journal == tmp_path / "d" / "cluster.journal"
        with pytest.raises(CannotSupervise, match="in use"), _folder(config):
            raise AssertionError("it was not refused")
    with _folder(config):
        pass


@pytest.mark.parametrize(("brokers", "missing"), [(1, ["broker-1", "broker-2"]), (2, ["broker-2"]), (3, []), (5, [])])
def test_sv3_a_warning_names_the_brokers_that_are_not_started(tmp_path: Path, brokers: int, missing: list[str]) -> None:
    for path in ("broker-0/t-0", "broker-1/t-1", "broker-2/t-0", "broker-2/t-2", "broker-3", "broker-4/t-1.00-stray"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "broker-9").write_text("no folder")
    with structlog.testing.capture_logs() as logs:
        _warn_of_brokers_not_started(ServeOptions(brokers=brokers), BrokerConfig({"log.dirs": str(tmp_path)}))
    assert [(line["log_level"], line["folder"]) for line in logs] == [
        ("warning", str(tmp_path / name)) for name in missing
    ]
    assert [line["partitions"] for line in logs] == [2 if name == "broker-2" else 1 for name in missing]
