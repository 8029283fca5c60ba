"""The options of `rota configs`; tests/cli/test_configs.py runs it on brokers."""

from __future__ import annotations

from argparse import Namespace

import pytest

from rota.cli.configs import changes_of, entry_document, resource_of
from rota.cli.settings import UsageError
from rota.client import ConfigChange, ConfigEntry, ConfigResource, ConfigSource, ConfigSynonym, ConfigType, ResourceType

NOTHING = {"set": [], "append": [], "subtract": [], "delete": []}


@pytest.mark.parametrize(
    ("kind", "name", "resource"),
    [
        ("topic", "5", ConfigResource.topic("5")),
        ("broker", "0", ConfigResource.broker(0)),
        ("broker", "default", ConfigResource.broker(None)),
        ("broker-logger", "1", ConfigResource(ResourceType.BROKER_LOGGER, "1")),
        ("group", "g", ConfigResource(ResourceType.GROUP, "g")),
        ("client-metrics", "m", ConfigResource(ResourceType.CLIENT_METRICS, "m")),
    ],
)
def test_resources(kind: str, name: str, resource: ConfigResource) -> None:
    assert resource_of(kind, name) == resource


@pytest.mark.parametrize(("kind", "name"), [("broker", "a"), ("broker", "²"), ("broker-logger", "default")])
def test_a_broker_is_named_by_its_id(kind: str, name: str) -> None:
    with pytest.raises(UsageError, match="id of a broker"):
        resource_of(kind, name)


def test_changes() -> None:
    given = Namespace(**NOTHING | {"set": [("a", "1")], "delete": ["b"]})
    assert changes_of(given) == {"a": ConfigChange.set("1"), "b": ConfigChange.delete()}
    with pytest.raises(UsageError, match="nothing to change"):
        changes_of(Namespace(**NOTHING))
    with pytest.raises(UsageError, match="named twice"):
        changes_of(Namespace(**NOTHING | {"set": [("a", "1")], "delete": ["a"]}))


def test_a_setting_as_json() -> None:
    synonym = ConfigSynonym("log.retention.ms", "5", ConfigSource.STATIC_BROKER)
    entry = ConfigEntry("retention.ms", "5", ConfigSource.STATIC_BROKER, type=ConfigType.LONG, synonyms=(synonym,))
    document = entry_document(entry, synonyms=True)
    assert document["synonyms"] == [{"name": "log.retention.ms", "value": "5", "source": "STATIC_BROKER"}]
    assert "synonyms" not in entry_document(entry, synonyms=False)
