"""The options of `rota serve`, and the broker settings that they give.

In ascending order of precedence: preset, file, environment, --data and --listen, --set.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from rota.coordinator.config.broker import BrokerConfig, definition_of
from rota.coordinator.config.definition import ConfigRefused, UnknownConfig
from rota.coordinator.config.presets import PRESETS
from rota.coordinator.observe.logs import FORMATS, LEVELS
from rota.protocol.dataclass import dataclass
from rota.transport.properties_file import load_properties

FLAGS: dict[str, str] = {
    "--data": "data",
    "--config": "config",
    "--listen": "listen",
    "--set": "settings",
    "--preset": "preset",
    "--brokers": "brokers",
    "--store": "store",
    "--ready-fd": "ready_fd",
    "--log-format": "log_format",
    "--log-level": "log_level",
}
"""The options that take a value."""
SWITCHES: dict[str, str] = {"--memory": "memory", "--environment": "environment"}
"""The options that take none."""
PREFIX = "KAFKA_"  # of the variables that `--environment` reads, as in the images of Apache Kafka
NO_PROPERTIES = {  # variables of those images for Java and its logs, which they do not read as properties either
    "KAFKA_VERSION",
    "KAFKA_HEAP_OPTS",
    "KAFKA_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
}

BROKERS_MAX = 64
CLUSTER_JOURNAL = "cluster.journal"  # the metadata of `--brokers`, beside the folders of its brokers


class OptionsRefused(ValueError):
    """An invalid command line; the message has the remedy."""


@dataclass(slots=True)
class ServeOptions:
    """The command line of `rota serve`. `settings` are `name=value`.

    `brokers` makes a cluster of processes; `store` is the address at which one of them finds its supervisor's store.
    """

    data: str | None = None
    memory: bool = False
    environment: bool = False
    config: str | None = None
    listen: str | None = None
    settings: tuple[str, ...] = ()
    preset: str | None = None
    brokers: int | None = None
    store: str | None = None
    ready_fd: int | None = None
    log_format: str = "auto"
    log_level: str = "info"

    def check(self) -> None:
        """Raises OptionsRefused."""
        if self.memory and self.data is not None:
            raise OptionsRefused("--memory keeps nothing on disk: leave out --data, or --memory")
        if self.brokers is not None and not 1 <= self.brokers <= BROKERS_MAX:
            raise OptionsRefused(f"--brokers {self.brokers}: expected a number from 1 to {BROKERS_MAX}")
        for name, value, valid in (
            ("--log-format", self.log_format, FORMATS),
            ("--log-level", self.log_level, LEVELS),
            ("--preset", self.preset, tuple(PRESETS)),
        ):
            if value is not None and value not in valid:
                raise OptionsRefused(f"{name} {value}: valid values are {', '.join(valid)}")

    def check_folder(self, config: BrokerConfig) -> None:
        """Raises OptionsRefused for a single broker on the folder of a cluster: it would start without its topics."""
        folder = config.log_dirs[0]
        if not self.memory and (self.brokers or 1) == 1 and os.path.exists(os.path.join(folder, CLUSTER_JOURNAL)):
            raise OptionsRefused(
                f"{folder} has the data of a cluster: give --brokers N as before, or choose another folder with --data"
            )

    def broker_config(self) -> BrokerConfig:
        """Return the settings of the broker. Raises OptionsRefused, ConfigRefused, FileRefused, OSError."""
        properties = dict(PRESETS[self.preset]) if self.preset is not None else {}
        if self.config is not None:
            properties |= load_properties(self.config)
        ignored: list[str] = []
        if self.environment:
            properties |= environment_properties(os.environ, ignored)
        if self.data is not None:
            properties["log.dirs"] = self.data
        if self.listen is not None:
            properties["listeners"] = _listener(self.listen)
        properties |= dict(map(_pair, self.settings))
        config = BrokerConfig(properties)
        config.warnings = (*ignored, *config.warnings)
        return config


def parse_plain(arguments: list[str]) -> ServeOptions | None:
    """Return the options; None when argparse must parse them, for help or an error."""
    options, given = ServeOptions(), iter(arguments)
    for argument in given:
        name, equals, value = argument.partition("=")
        if name in SWITCHES and not equals:
            setattr(options, SWITCHES[name], True)
            continue
        field = FLAGS.get(name)
        if field is None or (not equals and (value := next(given, "--")).startswith("--")):
            return None
        if field == "settings":
            options.settings += (value,)
        elif field in ("brokers", "ready_fd"):
            if not value.isdecimal():
                return None
            setattr(options, field, int(value))
        else:
            setattr(options, field, value)
    return options


def environment_properties(variables: Mapping[str, str], ignored: list[str]) -> dict[str, str]:
    """Return the properties of the variables KAFKA_…: KAFKA_NODE_ID is node.id; `__` is `_`, `___` is `-`.

    A variable that is no property is left out, and a line about it added to `ignored`: Kubernetes sets KAFKA_PORT and
    others in each container beside a service named kafka.
    """
    properties: dict[str, str] = {}
    for variable, value in variables.items():
        if not variable.startswith(PREFIX) or variable in NO_PROPERTIES:
            continue
        name = _property(variable)
        try:
            definition_of(name)
        except UnknownConfig as unknown:
            ignored.append(f"{variable} is ignored: {unknown}")
        else:
            properties[name] = value
    return properties


def _property(variable: str) -> str:
    name = variable.removeprefix(PREFIX).lower()
    return "_".join(part.replace("_", ".") for part in name.replace("___", "-").split("__"))


def _listener(text: str) -> str:
    return text if "://" in text else f"PLAINTEXT://{text}"


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise OptionsRefused(f"--set {text}: expected name=value")
    return name.strip(), value.strip()


__all__ = ["FLAGS", "ConfigRefused", "OptionsRefused", "ServeOptions", "parse_plain"]
