"""What a client without permissions is answered, of every API in every version, is what Apache Kafka answered.

Kafka's side is a recording, so that this runs without Java; with ROTA_PEER=HOST:PORT a live Kafka is asked as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.interop.acl_apis.grants import run_grants_scenario
from tests.interop.acl_apis.recording import distinctive_steps, recorded, recorded_grants, step_key
from tests.interop.acl_apis.scenario import NOT_RECORDED, Line, run_scenario
from tests.interop.broker import PROPERTIES, started
from tests.soak import soak_only

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


DIFFERENT_ERRORS = {
    "find_coordinator 2": "Rota has no share groups, and says so.",
    "find_coordinator 2 and another": "The same.",
    "update_features 0": "Rota has no metadata.version; the text says which are supported.",
}  # of what a chapter allows


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a Rota broker with an authorizer."""
    folder: Path = tmp_path_factory.mktemp("acl-apis")
    with started(folder, SECURED) as bootstrap:
        yield bootstrap


@pytest.fixture(scope="module")
def rota(secured: str) -> list[Line]:
    """The conversation with a Rota broker."""
    return list(run_scenario(secured))


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
        differ = differences(list(run_scenario(PEER)), rota)
        if not differ:
            break
    assert not differ, "\n".join(differ)


# ---- every API in every version, with one permission: errors alone


def different_errors(kafka: list[Line], rota: list[Line]) -> list[str]:
    differ = []
    for theirs, ours in zip(kafka, rota, strict=True):
        assert step_key(theirs) == step_key(ours)
        is_known = theirs["step"] in DIFFERENT_ERRORS and codes(theirs["answer"]) == codes(ours["answer"])
        if theirs != ours and not is_known:
            differ.append(f"{step_key(theirs)}:\n  kafka {theirs['answer']}\n  rota  {ours['answer']}")
    return differ


def codes(answer: Any) -> list[int]:
    """The error codes of an answer."""
    if isinstance(answer, list):
        return [code for each in answer for code in codes(each)]
    if not isinstance(answer, dict):
        return []
    own = [answer["error_code"]] if "error_code" in answer else []
    return own + [code for value in answer.values() for code in codes(value)]


def test_a_client_with_one_permission_gets_the_errors_of_the_recorded_kafka(secured: str) -> None:
    """What a permission changes: one operation on everything, or everything on one type of resource."""
    kafka = recorded_grants()
    shown = distinctive_steps(kafka)
    answers = list(run_grants_scenario(secured, lambda *step: step in shown))
    assert not (differ := different_errors([line for line in kafka if step_key(line) in shown], answers)), "\n".join(
        differ
    )


@soak_only
def test_a_client_with_one_permission_gets_all_errors_of_the_recorded_kafka(secured: str) -> None:
    assert not (differ := different_errors(recorded_grants(), list(run_grants_scenario(secured)))), "\n".join(differ)


def test_the_recording_has_each_permission_and_every_version() -> None:
    lines = recorded_grants()
    played = {(line["step"].split()[0], line["version"]) for line in lines if line["chapter"] == "describe"}
    apis = {(SERVES[key], version) for key in SERVES if ACCESS[key].needs for version in APIS[key].versions}
    assert apis <= played
    refusals = {code for line in lines for code in codes(line["answer"]) if code in (29, 30, 31, 53)}
    assert refusals == {29, 30, 31, 53}
    assert len({line["chapter"] for line in lines}) == 15


@soak_only
@pytest.mark.peer
@pytest.mark.skipif(PEER is None, reason="ROTA_PEER names no running Apache Kafka")
def test_a_client_with_one_permission_gets_the_errors_of_the_living_kafka() -> None:
    assert PEER is not None
    assert not (differ := different_errors(list(run_grants_scenario(PEER)), recorded_grants())), "\n".join(differ)
