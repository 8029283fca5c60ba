"""The settings of other Kafka clients, each with Rota's setting or the reason why there is none. Pure.

Laws
    Every name that librdkafka, aiokafka or Kafka's Java client documents gets an answer of its own: a setting of Rota,
    with the difference in meaning if there is one, or a reason. It never gets the nearest spelling.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Counterpart(NamedTuple):
    """`setting` is a dotted name of Rota, None if there is none; `note` has the reason or the difference."""

    setting: str | None
    note: str = ""


# names of other clients whose values mean the same: `from_properties` takes them for ours
ALIASES: Final = {
    "sasl.mechanisms": "sasl.mechanism",  # librdkafka
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.plain.username": "sasl.username",  # aiokafka
    "sasl.plain.password": "sasl.password",
}


def counterpart(name: str) -> Counterpart | None:
    """Return the setting of Rota for the setting `name` of another client, in dots or underscores; None if unknown."""
    dotted = name.replace("_", ".")
    if dotted in ALIASES:
        return Counterpart(ALIASES[dotted])
    found = COUNTERPARTS.get(dotted)
    if found is not None:
        return found
    return next((Counterpart(None, why) for pattern, why in FAMILIES if re.fullmatch(pattern, dotted)), None)


_CALLBACK: Final = "there are no callbacks in the configuration; calls return and raise what happens"
_LOG: Final = "configure Python's logging, below the logger rota.client"
_METRICS: Final = "this client keeps no statistics"
_NO_QUEUE: Final = "there is no queue of this kind"
_CODE: Final = "an argument of another client's constructor, without a counterpart"
_VERSIONS: Final = "versions are negotiated with each broker"
_OFFSETS: Final = "offsets are stored in the group; commit() and enable.auto.commit say when"
_SYSTEM: Final = "the operating system's default is used"
_METADATA: Final = "metadata is read again when it proves wrong, after retry.backoff.ms"
_TRANSACTIONS: Final = "transactions have the settings transactional.id and transaction.timeout.ms"
_KERBEROS: Final = "the SASL mechanisms are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER"
_JAVA: Final = "a class of Java, without a counterpart"
_STORES: Final = "stores are PEM or PKCS12, in files or as text: ssl.truststore.…, ssl.keystore.…"
_TOKENS: Final = "sasl.oauth.token.provider returns the token; its Token has extensions and an end"
_BYTES: Final = "keys and values are bytes: encode before sending, decode after reading"
_PROTOCOL: Final = "the type of a group of consumers is consumer; group.protocol chooses how it assigns"

COUNTERPARTS: Final[dict[str, Counterpart]] = {
    # librdkafka: all clients
    "metadata.broker.list": Counterpart("bootstrap.servers"),
    "message.max.bytes": Counterpart("max.request.size"),
    "message.copy.max.bytes": Counterpart(None, "records are always copied into their batch"),
    "receive.message.max.bytes": Counterpart("fetch.max.bytes", "there is no other limit of an answer's size"),
    "max.in.flight": Counterpart("max.in.flight.requests.per.connection"),
    "metadata.recovery.rebootstrap.trigger.ms": Counterpart(
        "metadata.recovery.strategy", "bootstrap servers are used again as soon as no known broker answers"
    ),
    "topic.metadata.refresh.interval.ms": Counterpart("metadata.max.age.ms"),
    "topic.metadata.refresh.fast.interval.ms": Counterpart("retry.backoff.ms", _METADATA),
    "topic.metadata.refresh.fast.cnt": Counterpart(None, _METADATA),
    "topic.metadata.refresh.sparse": Counterpart(None, "only metadata of the topics in use is read"),
    "topic.metadata.propagation.max.ms": Counterpart("max.block.ms", "send() waits so long for a new topic"),
    "topic.blacklist": Counterpart(None, "subscribe with a pattern that does not match these topics"),
    "debug": Counterpart(None, _LOG),
    "socket.timeout.ms": Counterpart("request.timeout.ms"),
    "socket.blocking.max.ms": Counterpart(None, "sockets never block"),
    "socket.send.buffer.bytes": Counterpart(None, _SYSTEM),
    "socket.receive.buffer.bytes": Counterpart(None, _SYSTEM),
    "socket.keepalive.enable": Counterpart(None, "TCP keepalive is always on"),
    "socket.nagle.disable": Counterpart(None, "Nagle's algorithm is always off"),
    "socket.max.fails": Counterpart(None, "a connection is closed at its first failure"),
    "broker.address.ttl": Counterpart(None, "addresses are resolved at every connection"),
    "broker.address.family": Counterpart(None, "every address that the name resolves to is tried"),
    "reconnect.backoff.jitter.ms": Counterpart("reconnect.backoff.ms", "its jitter is 20 %"),
    "statistics.interval.ms": Counterpart(None, _METRICS),
    "stats.cb": Counterpart(None, _METRICS),
    "enabled.events": Counterpart(None, _CALLBACK),
    "log.level": Counterpart(None, _LOG),
    "log.queue": Counterpart(None, _LOG),
    "log.thread.name": Counterpart(None, _LOG),
    "log.connection.close": Counterpart(None, _LOG),
    "log.cb": Counterpart(None, _LOG),
    "enable.random.seed": Counterpart(None, "Python's random module is used as the program has seeded it"),
    "opaque": Counterpart(None, _CODE),
    "default.topic.conf": Counterpart(None, "settings of topics are settings of the producer or consumer"),
    "internal.termination.signal": Counterpart(None, "no threads are used"),
    "builtin.features": Counterpart(None, "`import rota.client` has all features"),
    "api.version.request": Counterpart(None, _VERSIONS),
    "api.version.request.timeout.ms": Counterpart("socket.connection.setup.timeout.ms"),
    "api.version.fallback.ms": Counterpart(None, _VERSIONS),
    "broker.version.fallback": Counterpart(None, _VERSIONS),
    "plugin.library.paths": Counterpart(None, "there are no plugins"),
    "interceptors": Counterpart(None, "there are no interceptors"),
    "sticky.partitioning.linger.ms": Counterpart(
        "linger.ms", "a record without a key changes partition when batch.size bytes have been written"
    ),
    "enable.ssl.certificate.verification": Counterpart(
        None, "the broker's certificate is always verified; ssl.truststore.location says by what"
    ),
    "sasl.oauthbearer.method": Counterpart(
        "sasl.oauthbearer.token.endpoint.url", "when it is set, tokens come from there by client credentials"
    ),
    "oauth.cb": Counterpart("sasl.oauth.token.provider", "an async function that returns the token"),
    "oauthbearer.token.refresh.cb": Counterpart(
        "sasl.oauth.token.provider", "an async function that returns the token"
    ),
    # librdkafka: consumer
    "group.protocol.type": Counterpart(None, _PROTOCOL),
    "coordinator.query.interval.ms": Counterpart(None, "the coordinator is looked for when it proves wrong"),
    "enable.auto.offset.store": Counterpart("enable.auto.commit", _OFFSETS),
    "queued.min.messages": Counterpart(None, "one answer of each broker is fetched ahead"),
    "queued.max.messages.kbytes": Counterpart("fetch.max.bytes", "in bytes; at most two answers per broker are held"),
    "fetch.wait.max.ms": Counterpart("fetch.max.wait.ms"),
    "fetch.queue.backoff.ms": Counterpart(None, _NO_QUEUE),
    "fetch.message.max.bytes": Counterpart("max.partition.fetch.bytes"),
    "fetch.error.backoff.ms": Counterpart("retry.backoff.ms"),
    "offset.store.method": Counterpart(None, _OFFSETS),
    "offset.store.path": Counterpart(None, _OFFSETS),
    "offset.store.sync.interval.ms": Counterpart(None, _OFFSETS),
    "auto.commit.enable": Counterpart("enable.auto.commit"),
    "enable.partition.eof": Counterpart(None, "compare position() with end_offsets()"),
    "consume.callback.max.messages": Counterpart("max.poll.records"),
    "share.acknowledgement.mode": Counterpart(None, "there are no share groups"),
    # librdkafka: producer
    "enable.gapless.guarantee": Counterpart(None, "a record that fails does not stop the later ones"),
    "queue.buffering.max.messages": Counterpart("buffer.memory", "in bytes, not in records"),
    "queue.buffering.max.kbytes": Counterpart("buffer.memory", "in bytes, not in KiB"),
    "queue.buffering.max.ms": Counterpart("linger.ms"),
    "queue.buffering.backpressure.threshold": Counterpart(None, "batches are sent as soon as a request is free"),
    "message.send.max.retries": Counterpart("retries"),
    "compression.codec": Counterpart("compression.type"),
    "batch.num.messages": Counterpart("batch.size", "in bytes, not in records"),
    "delivery.report.only.error": Counterpart(None, "await the Delivery that send() returns"),
    "produce.offset.report": Counterpart(None, "the Delivery that send() returns has the offset"),
    "request.required.acks": Counterpart("acks"),
    "message.timeout.ms": Counterpart("delivery.timeout.ms"),
    "queuing.strategy": Counterpart(None, "records are sent first in, first out"),
    "msg.order.cmp": Counterpart(None, "records are sent first in, first out"),
    "partitioner.cb": Counterpart("partitioner", "a callable (topic, key, value, partitions) -> partition"),
    # aiokafka
    "topics": Counterpart(None, "call subscribe([…]) or assign([…])"),
    "loop": Counterpart(None, "the running event loop is used"),
    "api.version": Counterpart(None, _VERSIONS),
    "rebalance.timeout.ms": Counterpart("max.poll.interval.ms"),
    "consumer.timeout.ms": Counterpart("fetch.max.wait.ms", "getmany(timeout_ms=…) bounds a poll"),
    "max.batch.size": Counterpart("batch.size"),
    # Kafka's Java clients
    "ssl.protocol": Counterpart("ssl.enabled.protocols", "a list, as TLSv1.2,TLSv1.3"),
    "partitioner.class": Counterpart("partitioner", "murmur2_random, random, or a callable"),
    "partitioner.adaptive.partitioning.enable": Counterpart(None, "partitions without a leader are avoided"),
    "partitioner.availability.timeout.ms": Counterpart(None, "partitions without a leader are avoided"),
    "metadata.cluster.check.enable": Counterpart(None, "a broker's metadata is always taken as it is"),
    "auto.include.jmx.reporter": Counterpart(None, _METRICS),
    "default.list.key.serde.inner": Counterpart(None, _BYTES),
}
FAMILIES: Final = (
    (r"(key|value)\.(de)?serializer", _BYTES),
    (r"sasl\.(kerberos|gssapi)\..*", _KERBEROS),
    (r"sasl\.oauthbearer\..*|enable\.sasl\..*|oauthbearer\..*", _TOKENS),
    (r"sasl\.login\..*|sasl\.client\.callback\.handler\.class|security\.providers|ssl\.(provider|engine.*)", _JAVA),
    (r"ssl\.(keymanager|trustmanager|secure\.random)\..*", _JAVA),
    (r"(ssl|https)\..*", _STORES),
    (r"transaction(al)?\..*", _TRANSACTIONS),
    (r"interceptor\.classes", "there are no interceptors"),
    (r"metrics?\..*|metric\.reporters|enable\.metrics\.push", _METRICS),
    (r"(send|receive)\.buffer\.bytes", _SYSTEM),
    (r"client\.dns\.lookup", "every address that the name resolves to is tried"),
    (r"compression\.(gzip|lz4|zstd)\.level", "the level of compression.type is compression.level"),
    (r".*\.cb", _CALLBACK),
)
