"""Leader epochs: where each began and ended, and Kafka's file."""

from __future__ import annotations

import pytest

from rota.coordinator.log.epochs import BadCheckpoint, LeaderEpochs


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    made = LeaderEpochs()
    for epoch, start in entries:
        assert made.assign(epoch, start)
    return made


def test_an_epoch_begins_once() -> None:
    known = epochs((0, 0), (2, 10))
    assert not known.assign(2, 15)
    assert not known.assign(-1, 20)
    assert known.latest == 2
    assert known.entries() == [(0, 0), (2, 10)]


def test_an_epoch_without_records_gives_way() -> None:
    assert epochs((0, 0), (1, 10), (2, 10)).entries() == [(0, 0), (2, 10)]


def test_entries_that_contradict_a_later_one_are_removed() -> None:
    assert epochs((0, 0), (5, 10), (7, 20), (6, 15)).entries() == [(0, 0), (5, 10), (6, 15)]


@pytest.mark.parametrize(
    ("requested", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 5)),  # below all that is known: it ended where the first known begins
        (1, (1, 10)),
        (2, (1, 10)),  # never seen: the one before
        (4, (4, 50)),  # the latest ends with the log
        (5, (-1, -1)),  # of the future
    ],
)
def test_where_an_epoch_ended(requested: int, answer: tuple[int, int]) -> None:
    assert epochs((1, 5), (3, 10), (4, 20)).end(requested, 50) == answer


def test_an_empty_log_has_no_epoch() -> None:
    assert LeaderEpochs().end(0, 10) == (-1, -1)
    assert (LeaderEpochs().latest, LeaderEpochs().at(0)) == (-1, -1)


def test_the_epoch_of_a_record() -> None:
    known = epochs((1, 5), (3, 10))
    assert [known.at(offset) for offset in (4, 5, 9, 10, 99)] == [-1, 1, 1, 3, 3]


def test_truncation_removes_epochs_that_start_later() -> None:
    known = epochs((1, 5), (3, 10))
    assert known.truncate(10)
    assert not known.truncate(10)
    assert known.entries() == [(1, 5)]


def test_a_new_log_start_removes_epochs_that_ended_before() -> None:
    known = epochs((1, 5), (3, 10), (4, 20))
    assert known.begin(12)
    assert known.entries() == [(3, 12), (4, 20)]
    assert not known.begin(12)
    assert not known.begin(3)


def test_the_file_is_kafkas() -> None:
    known = epochs((0, 0), (2, 17))
    assert known.to_text() == "0\n2\n0 0\n2 17\n"
    assert LeaderEpochs.from_text(known.to_text()).entries() == known.entries()


@pytest.mark.parametrize("text", ["", "0", "0\n2\n0 0\n", "1\n1\n0 0\n", "0\n1\nx y\n", "0\n1\n0 0 0\n"])
def test_a_damaged_file(text: str) -> None:
    with pytest.raises(BadCheckpoint):
        LeaderEpochs.from_text(text)
