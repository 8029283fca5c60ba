"""Every setting of librdkafka and of aiokafka is Rota's, or has a counterpart, or a reason why there is none."""

from __future__ import annotations

import ctypes
import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient

from rota.client.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig
from rota.client.errors import ConfigError
from rota.client.other_clients import COUNTERPARTS, counterpart

B = "127.0.0.1:9092"
DATA = Path(__file__).parents[2] / "data" / "librdkafka_properties.txt"
CONFIGS: tuple[type[ClientConfig], ...] = (AdminConfig, ConsumerConfig, ProducerConfig)
OURS = {field.name.replace("_", ".") for config in CONFIGS for field in fields(config)}


def librdkafka_installed(folder: Path) -> list[str]:
    """The names that the installed librdkafka prints (rd_kafka_conf_properties_show)."""
    (library,) = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob("librdkafka*")
    show = ctypes.CDLL(str(library)).rd_kafka_conf_properties_show
    libc = ctypes.CDLL(None)
    libc.fopen.restype, libc.fclose.argtypes, show.argtypes = ctypes.c_void_p, [ctypes.c_void_p], [ctypes.c_void_p]
    page = folder / "properties"
    file = libc.fopen(str(page).encode(), b"w")
    show(file)
    libc.fclose(file)
    names = [line.split("|")[0].strip() for line in page.read_text().splitlines() if "|" in line]
    return [name for name in names if name != "Property" and not name.startswith("---")]


def aiokafka_installed() -> set[str]:
    kinds: tuple[Any, ...] = (aiokafka.AIOKafkaConsumer, aiokafka.AIOKafkaProducer, AIOKafkaAdminClient)
    return {name for kind in kinds for name in inspect.signature(kind.__init__).parameters} - {"self"}


def test_the_list_of_librdkafka_is_the_installed_one(tmp_path: Path) -> None:
    assert DATA.read_text().split() == sorted(set(librdkafka_installed(tmp_path)))


@pytest.mark.parametrize("name", DATA.read_text().split())
def test_every_name_of_librdkafka_has_an_answer(name: str) -> None:
    assert name in OURS or counterpart(name) is not None


@pytest.mark.parametrize("name", sorted(aiokafka_installed()))
def test_every_name_of_aiokafka_has_an_answer(name: str) -> None:
    assert name.replace("_", ".") in OURS or counterpart(name) is not None


@pytest.mark.parametrize(("name", "found"), COUNTERPARTS.items())
def test_a_counterpart_is_a_setting_or_a_reason(name: str, found: Any) -> None:
    assert found.setting in OURS if found.setting is not None else found.note
    assert name not in OURS, "a name of ours needs no counterpart"


@pytest.mark.parametrize(
    ("config", "name", "message"),
    [
        (ProducerConfig, "message.timeout.ms", "use delivery.timeout.ms"),
        (ProducerConfig, "request.required.acks", "use acks"),
        (ProducerConfig, "statistics.interval.ms", "this client keeps no statistics"),
        (ProducerConfig, "queue.buffering.max.kbytes", r"use buffer.memory \(in bytes, not in KiB\)"),
        (ProducerConfig, "max_batch_size", "use batch.size"),
        (ProducerConfig, "key_serializer", "keys and values are bytes"),
        (ConsumerConfig, "fetch.wait.max.ms", "use fetch.max.wait.ms"),
        (ConsumerConfig, "message.timeout.ms", "use delivery.timeout.ms of ProducerConfig"),
        (ConsumerConfig, "acks", "it is a setting of ProducerConfig"),
        (AdminConfig, "group.id", "it is a setting of ConsumerConfig"),
        (AdminConfig, "socket.timeout.ms", "use request.timeout.ms"),
        (AdminConfig, "enable.ssl.certificate.verification", "the broker's certificate is always verified"),
        (AdminConfig, "request.timeut.ms", r"did you mean request.timeout.ms\?"),
    ],
)
def test_the_error_names_the_replacement_setting(config: type[ClientConfig], name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"{config.__name__} has no setting {name}.* ?{message}"):
        config.from_properties({"bootstrap.servers": B, name: "1"})
