"""Options of a query: as Spark's Kafka source has them; what is wrong is refused with its name."""

from __future__ import annotations

import pytest

from rota.client.types import TopicPartition
from rota.spark_connector.errors import OptionError
from rota.spark_connector.offsets import EARLIEST, LATEST
from rota.spark_connector.options import Transactions, batch_options, parse_duration_ms, stream_options, write_options

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
BASE = {**SERVERS, "subscribe": "orders"}


def test_a_batch_reads_the_whole_log_by_default() -> None:
    answer = batch_options(BASE)
    assert answer.topics.names == ("orders",)
    assert (answer.starting.offset, answer.ending.offset) == (EARLIEST, LATEST)
    assert answer.fail_on_data_loss
    assert not answer.include_headers
    assert answer.client == {"bootstrap.servers": "127.0.0.1:9092"}


def test_a_stream_starts_at_the_end_by_default() -> None:
    assert stream_options(BASE).starting.offset == LATEST


def test_names_have_any_case() -> None:
    answer = batch_options({"KAFKA.BOOTSTRAP.SERVERS": "h:1", "SubScribe": "a, b,a", "FAILONDATALOSS": "false"})
    assert answer.topics.names == ("a", "b")
    assert not answer.fail_on_data_loss


def test_one_of_three_ways_names_the_topics() -> None:
    assert batch_options({**SERVERS, "assign": '{"t":[1,0]}'}).topics.assigned == (
        TopicPartition("t", 0),
        TopicPartition("t", 1),
    )
    assert batch_options({**SERVERS, "subscribePattern": "o.*"}).topics.pattern == "o.*"


def test_a_time_wins_over_offsets() -> None:
    answer = batch_options(
        {
            **BASE,
            "startingTimestamp": "1000",
            "startingOffsets": "earliest",
            "endingOffsetsByTimestamp": '{"orders": {"0": 2000}}',
            "endingOffsets": "latest",
        }
    )
    assert answer.starting.time_ms == 1000
    assert answer.ending.times == {TopicPartition("orders", 0): 2000}


def test_a_stream_can_start_at_the_offsets_of_a_group() -> None:
    assert stream_options({**BASE, "kafka.group.id": "g"}) == stream_options(BASE), "it has no effect, as in Spark"
    answer = stream_options({**BASE, "group.id": "g", "startingOffsets": "group"})
    assert answer.starting.from_group
    assert answer.starting.offset == LATEST
    assert answer.group_id == "g"


def test_limits_of_a_micro_batch() -> None:
    answer = stream_options(
        {**BASE, "maxOffsetsPerTrigger": "100", "minOffsetsPerTrigger": "10", "maxTriggerDelay": "15m"}
    )
    assert (answer.offsets_per_trigger_max, answer.offsets_per_trigger_min, answer.trigger_delay_max_ms) == (
        100,
        10,
        900_000,
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (SERVERS, "subscribe"),
        ({"subscribe": "t"}, "kafka.bootstrap.servers"),
        ({**BASE, "assign": '{"t":[0]}'}, "assign, subscribe"),
        ({**SERVERS, "subscribe": " , "}, "subscribe"),
        ({**SERVERS, "subscribePattern": "("}, "subscribePattern"),
        ({**BASE, "startingOfsets": "earliest"}, "startingOffsets"),
        ({**BASE, "startingOffsets": "latest"}, "startingOffsets"),
        ({**BASE, "startingOffsets": '{"orders": {"0": -1}}'}, "startingOffsets"),
        ({**BASE, "startingOffsets": "soon"}, "startingOffsets"),
        ({**BASE, "startingOffsets": "group"}, "group.id"),
        ({**BASE, "endingOffsets": "earliest"}, "endingOffsets"),
        ({**BASE, "endingOffsets": '{"orders": {"0": -2}}'}, "endingOffsets"),
        ({**BASE, "startingTimestamp": "noon"}, "startingTimestamp"),
        ({**BASE, "startingTimestamp": "²"}, "startingTimestamp"),
        ({**BASE, "startingTimestamp": "1700000000000.0"}, "startingTimestamp"),
        ({**BASE, "startingTimestamp": str(1 << 63)}, "startingTimestamp"),
        ({**BASE, "startingOffsetsByTimestamp": f'{{"t": {{"0": {1 << 63}}}}}'}, "startingOffsetsByTimestamp"),
        ({**BASE, "startingOffsetsByTimestamp": '{"t": {"0": true}}'}, "startingOffsetsByTimestamp"),
        ({**BASE, "startingOffsets": '{"t": {"²": 1}}'}, "startingOffsets"),
        ({**BASE, "startingOffsets": f'{{"t": {{"{1 << 31}": 1}}}}'}, "startingOffsets"),
        ({**BASE, "startingOffsets": f'{{"t": {{"0": {1 << 63}}}}}'}, "startingOffsets"),
        ({**SERVERS, "assign": f'{{"t": [{1 << 31}]}}'}, "assign"),
        ({**SERVERS, "subscribe": "['a', 'b']"}, "orders,payments"),
        ({**SERVERS, "subscribe": "or ders"}, "subscribe"),
        ({**BASE, "startingOffsetsByTimestampStrategy": "first"}, "startingOffsetsByTimestampStrategy"),
        ({**BASE, "minPartitions": "0"}, "minPartitions"),
        ({**BASE, "failOnDataLoss": "maybe"}, "failOnDataLoss"),
        ({**BASE, "maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger"),
        ({**BASE, "kafka.transactional.id": "t"}, "only a sink writes in transactions"),
        ({**BASE, "kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit"),
        ({**BASE, "kafka.max.poll.record": "1"}, "max.poll.records"),
        ({**SERVERS, "subscribe": "t", "kafka.bootstrap.servers": "nowhere"}, "bootstrap"),
    ],
)
def test_invalid_batch_options_are_refused_by_name(options: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        batch_options(options)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({**BASE, "endingOffsets": "latest"}, "endingOffsets"),
        ({**BASE, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "minOffsetsPerTrigger"),
        ({**BASE, "maxTriggerDelay": "15 fortnights"}, "maxTriggerDelay"),
        ({**BASE, "maxTriggerDelay": "9" * 5000}, "maxTriggerDelay"),
        ({**BASE, "maxTriggerDelay": str(1 << 62) + "d"}, "maxTriggerDelay"),
        ({**BASE, "maxOffsetsPerTrigger": str(1 << 63)}, "maxOffsetsPerTrigger"),
        ({**BASE, "maxOffsetsPerTrigger": "1_000"}, "maxOffsetsPerTrigger"),
        ({**BASE, "minPartitions": "\u0663"}, "minPartitions"),
    ],
)
def test_invalid_stream_options_are_refused_by_name(options: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        stream_options(options)


@pytest.mark.parametrize("value", ["", "  "])
def test_sp18_an_option_without_a_value_is_refused_by_name(value: str) -> None:
    for name in ("startingOffsets", "startingOffsetsByTimestampStrategy", "group.id", "subscribePattern", "subscribe"):
        topics = {} if name.startswith("subscribe") else {"subscribe": "t"}
        for parse in (batch_options, stream_options):
            with pytest.raises(OptionError, match=f"option {name} .*left out"):
                parse({**SERVERS, **topics, name: value})
    with pytest.raises(OptionError, match="topic"):
        write_options({**SERVERS, "topic": value})
    assert batch_options({**BASE, "path": value}).min_partitions is None, "what Spark gives beside the options"


def test_a_sink_may_leave_the_topic_to_its_rows() -> None:
    answer = write_options({**SERVERS, "kafka.linger.ms": "20"})
    assert answer.topic is None
    assert answer.client["linger.ms"] == "20"
    assert write_options({**SERVERS, "topic": "out", "includeHeaders": "true"}).include_headers


def test_a_sink_with_a_transactional_id_has_a_decision_topic() -> None:
    answer = write_options({**SERVERS, "kafka.transactional.id": "once"})
    assert answer.transactions == Transactions("once", "once-decisions")
    assert answer.client["transaction.timeout.ms"] == "900000"
    assert "transactional.id" not in answer.client
    own = {"kafka.transaction.timeout.ms": "5000", "decisionTopic": "d"}
    answer = write_options({**SERVERS, "kafka.transactional.id": "with space", **own})
    assert answer.transactions == Transactions("with space", "d")
    assert answer.client["transaction.timeout.ms"] == "5000"
    assert write_options(SERVERS).transactions is None


@pytest.mark.parametrize(
    "options",
    [
        {**SERVERS, "subscribe": "t"},
        {**SERVERS, "kafka.acks": "some"},
        {},
        {**SERVERS, "decisionTopic": "d"},
        {**SERVERS, "kafka.transactional.id": "id", "decisionTopic": "or ders"},
        {**SERVERS, "kafka.transactional.id": "id", "decisionTopic": "d", "topic": "d"},
        {**SERVERS, "kafka.transactional.id": "with space"},
        {**SERVERS, "kafka.transactional.id": ""},
        {**SERVERS, "kafka.transactional.id": "id", "kafka.acks": "1"},
    ],
)
def test_invalid_sink_options_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(OptionError):
        write_options(options)


@pytest.mark.parametrize(
    ("text", "ms"), [("200", 200), ("200ms", 200), ("90s", 90_000), ("15m", 900_000), (" 2 H ", 7_200_000)]
)
def test_durations(text: str, ms: int) -> None:
    assert parse_duration_ms("maxTriggerDelay", text) == ms


def test_security_settings_are_those_of_the_client_and_in_no_repr() -> None:
    secret = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="planted";'
    for answer in (
        batch_options(BASE | secret | {"kafka.sasl.jaas.config": jaas}),
        stream_options(BASE | secret | {"kafka.sasl.jaas.config": jaas}),
        write_options(SERVERS | secret | {"kafka.sasl.jaas.config": jaas}),
    ):
        assert answer.client["sasl.jaas.config"] == jaas
        assert "planted" not in repr(answer)
    with pytest.raises(OptionError, match="sasl_username") as refused:
        batch_options(BASE | secret | {"kafka.sasl.password": "planted"})
    assert "planted" not in str(refused.value)
