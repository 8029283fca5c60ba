"""What a client without permissions is answered, of every API in every version, is what Apache Kafka answered.

Kafka's side is a recording, so that this runs without Java; with ROTA_PEER=HOST:PORT a live Kafka is asked as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.acl_apis.recording import recorded
from tests.interop.acl_apis.story import NOT_RECORDED, Line, tell
from tests.interop.broker import PROPERTIES, started

from rota.coordinator.api.access.table import ACCESS
from rota.coordinator.api.routes import SERVES
from rota.protocol.registry import APIS

PEER = os.environ.get("ROTA_PEER")
SECURED = {
    **PROPERTIES,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
ATTEMPTS = 3  # a change of Kafka's ACLs is in force some time after DescribeAcls shows it, on the controller even later
DIFFERENT = {
    "create pattern any": "Kafka answers UNKNOWN_SERVER_ERROR; Rota says what is invalid.",
    "create pattern match": "The same.",
    "create operation any": "The same.",
    "create permission any": "The same.",
    "create resource any": "The same.",
}


@pytest.fixture(scope="module")
def rota(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Line]]:
    """The conversation with a Rota broker."""
    folder: Path = tmp_path_factory.mktemp("acl-apis")
    with started(folder, SECURED) as bootstrap:
        yield list(tell(bootstrap))


def differences(kafka: list[Line], rota: list[Line]) -> list[str]:
    differ = []
    for theirs, ours in zip(kafka, rota, strict=True):
        where = f"{theirs['chapter']}, {theirs['step']}"
        assert where == f"{ours['chapter']}, {ours['step']}"
        is_known = theirs["step"] in DIFFERENT and theirs["chapter"] in ("administration", "transactions")
        if theirs != ours and not is_known:
            differ.append(f"{where}:\n  kafka {theirs['answer']}\n  rota  {ours['answer']}")
    return differ


def test_a_client_is_refused_as_the_recorded_kafka_refused_it(rota: list[Line]) -> None:
    of_recorded = {(line["chapter"], line["step"]) for line in recorded()}
    requests = [line for line in rota if (line["chapter"], line["step"]) in of_recorded]
    assert not (differ := differences(recorded(), requests)), "\n".join(differ)


def test_the_recording_has_every_api_in_every_version() -> None:
    steps = {line["step"].rpartition(" ")[0] for line in recorded() if line["chapter"] == "nothing"}
    checked = [key for key in SERVES if ACCESS[key].needs and key not in NOT_RECORDED]
    expected = {f"{SERVES[key]} v{version}" for key in checked for version in APIS[key].versions}
    assert expected - WITHOUT_REQUEST <= steps
    assert set(DIFFERENT) <= {line["step"] for line in recorded()}


WITHOUT_REQUEST = {f"fetch v{version}" for version in (13, 14, 16, 17, 18)}  # their topics have ids that a broker draws


@pytest.mark.peer
@pytest.mark.skipif(PEER is None, reason="ROTA_PEER names no running Apache Kafka")
def test_a_client_is_refused_as_the_living_kafka_refuses_it(rota: list[Line]) -> None:
    assert PEER is not None
    for _ in range(ATTEMPTS):
        differ = differences(list(tell(PEER)), rota)
        if not differ:
            break
    assert not differ, "\n".join(differ)
