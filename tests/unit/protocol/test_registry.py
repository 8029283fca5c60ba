from __future__ import annotations

from pathlib import Path

from rota.protocol.registry import APIS, table

# What Apache Kafka 4.3.1 answers to ApiVersions for the APIs that we have. Produce begins at 0 there for librdkafka's
# sake, and 0-2 are refused; nobody can read or write them.
KAFKA_4_3 = {
    0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9), 12: (0, 4),
    13: (0, 5), 14: (0, 5), 15: (0, 6), 16: (0, 5), 17: (0, 1), 18: (0, 4), 19: (2, 7),
    20: (1, 6), 21: (0, 2), 22: (0, 5),
    23: (2, 4), 24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2), 28: (0, 5),
    29: (1, 3), 30: (1, 3), 31: (1, 3), 32: (1, 4), 33: (0, 2), 34: (1, 2), 35: (1, 5), 36: (0, 2),
    37: (0, 3), 38: (1, 3), 39: (1, 2), 40: (1, 2), 41: (1, 3), 42: (0, 2), 43: (0, 2), 44: (0, 1),
    45: (0, 1), 46: (0, 0), 47: (0, 0), 48: (0, 1), 49: (0, 1), 50: (0, 0), 51: (0, 0),
    55: (0, 2), 57: (0, 2), 60: (0, 2), 61: (0, 0), 64: (0, 0), 65: (0, 0), 66: (0, 2), 68: (0, 1), 69: (0, 1),
    71: (0, 0), 72: (0, 0), 74: (0, 1),
    75: (0, 0),
}  # fmt: skip


def test_the_versions_are_kafkas() -> None:
    ours = {api.key: (api.versions[0], api.versions[-1]) for api in APIS.values()}
    assert ours == {**KAFKA_4_3, 0: (3, 13)}


def test_request_and_response_belong_together() -> None:
    for api in APIS.values():
        assert api.request.__name__ == f"{api.name}Request"
        assert api.response.__name__ == f"{api.name}Response"
        for message in (api.request, api.response):
            assert (api.key, api.versions, api.flexible) == (message.KEY, message.VERSIONS, message.FLEXIBLE)


def test_the_head_of_each_file_names_its_api() -> None:
    for api in APIS.values():
        first, last = api.versions[0], api.versions[-1]
        span = f"version {first}" if first == last else f"versions {first}-{last}"
        assert api.title == f"{api.name}, key {api.key}, {span}."
        assert api.notes


def test_the_page_in_the_docs_is_fresh() -> None:
    page = Path(__file__).parents[3] / "docs" / "APIS.md"
    assert page.read_text("utf-8") == "\n".join(table()) + "\n"
