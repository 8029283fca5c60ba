"""The command line of `rota serve`: the short way and the explained way understand the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.cli.main import parser_of
from rota.coordinator.admin.options import (
    FLAGS,
    SWITCHES,
    OptionsRefused,
    ServeOptions,
    environment_properties,
    parse_plain,
)
from rota.coordinator.config.definition import ConfigRefused


def test_both_ways_have_the_same_options() -> None:
    parser = parser_of("serve")
    flags = {flag for action in parser._actions for flag in action.option_strings} - {"-h", "--help"}
    assert flags == set(FLAGS) | set(SWITCHES)
    given = vars(parser.parse_args([]))
    assert set(given) - {"run"} == set(ServeOptions.__slots__)
    defaults = {name: given[name] for name in ServeOptions.__slots__}
    assert ServeOptions(**defaults | {"settings": tuple(defaults["settings"])}) == ServeOptions()


def test_the_plain_parser_reads_options_with_values() -> None:
    line = "--memory --listen 127.0.0.1:0 --set a=b --set=c=d --ready-fd 3 --log-level debug --preset=dev"
    assert parse_plain(line.split()) == ServeOptions(
        memory=True,
        listen="127.0.0.1:0",
        settings=("a=b", "c=d"),
        ready_fd=3,
        log_level="debug",
        preset="dev",
    )
    assert parse_plain([]) == ServeOptions()
    assert parse_plain(["--environment"]) == ServeOptions(environment=True)


@pytest.mark.parametrize(
    "line",
    ["--help", "--what", "--data", "--data --memory", "--ready-fd x", "--ready-fd=-1", "stray", "--memory=yes", "-h"],
)
def test_the_short_way_leaves_the_rest_to_the_explained_one(line: str) -> None:
    assert parse_plain(line.split()) is None


def test_the_strongest_setting_wins(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "num.partitions=2\nlisteners=PLAINTEXT://127.0.0.1:1\ngroup.initial.rebalance.delay.ms=7\nlog.dirs=f\n"
    )
    options = ServeOptions(
        config=str(file), preset="dev", listen="[::1]:2", data="d", settings=("num.partitions = 3", "log.dirs=s")
    )
    config = options.broker_config()
    assert (config.num_partitions, config.group_initial_rebalance_delay_ms) == (3, 7)
    assert (config.log_dirs, config.group_min_session_timeout_ms) == (("s",), 1000)
    assert (config.listens[0].host, config.listens[0].port) == ("::1", 2)


def test_variables_are_named_as_in_the_images_of_kafka() -> None:
    variables = {"KAFKA_NODE_ID": "1", "KAFKA_A__B_C___D": "x", "HOME": "/", "XKAFKA_NODE_ID": "2"}
    ignored: list[str] = []
    assert environment_properties(variables, ignored) == {"node.id": "1"}
    assert [line.partition(" config name: ")[2] for line in ignored] == ["a_b.c-d"]


def test_the_environment_is_read_with_the_option_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKA_NUM_PARTITIONS", "5")
    monkeypatch.setenv("KAFKA_LOG_DIRS", "e")
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\n")
    assert ServeOptions(config=str(file)).broker_config().num_partitions == 2
    config = ServeOptions(config=str(file), environment=True, data="d").broker_config()
    assert (config.num_partitions, config.log_dirs) == (5, ("d",))
    assert config.warnings == ()


def test_a_variable_that_is_no_property_is_ignored_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubernetes sets KAFKA_PORT and others in each container beside a service named kafka."""
    monkeypatch.setenv("KAFKA_PORT", "tcp://10.0.0.1:9092")
    monkeypatch.setenv("KAFKA_NUM_PARTITION", "5")
    config = ServeOptions(environment=True).broker_config()
    assert config.num_partitions == 1
    assert len(config.warnings) == 2
    assert any(warning.startswith("KAFKA_PORT is ignored: ") for warning in config.warnings)
    assert any("KAFKA_NUM_PARTITION " in warning and "num.partitions" in warning for warning in config.warnings)


@pytest.mark.parametrize(
    ("options", "error_text"),
    [
        (ServeOptions(memory=True, data="x"), "--memory"),
        (ServeOptions(log_format="xml"), "auto, human, json"),
        (ServeOptions(log_level="loud"), "debug, info"),
        (ServeOptions(preset="prod"), "dev"),
        (ServeOptions(settings=("num.partitions",)), "name=value"),
        (ServeOptions(settings=("=3",)), "name=value"),
    ],
)
def test_invalid_options_are_refused_with_valid_ones(options: ServeOptions, error_text: str) -> None:
    with pytest.raises(OptionsRefused, match=error_text):
        _use(options)


def _use(options: ServeOptions) -> None:
    options.check()
    options.broker_config()


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigRefused, match="HOST:PORT"):
        ServeOptions(listen="nowhere").broker_config()


def test_variables_for_java_are_no_properties() -> None:
    ignored: list[str] = []
    variables = {"KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_VERSION": "4.3.1", "KAFKA_NODE_ID": "1"}
    assert environment_properties(variables, ignored) == {"node.id": "1"}
    assert not ignored
