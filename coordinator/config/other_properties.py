"""The properties of Apache Kafka 4.3 that have no effect in Rota: names, types, defaults.

A broker accepts them in a properties file of Kafka, and DescribeConfigs lists them. For security, plug-ins and tiered
storage the broker refuses every value except the default. Each line has a name, a type, a default (- for none) and an
update mode (read-only by default). The name ends with the unit: .ms, .seconds, .hours, .bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from rota.coordinator.config.definition import Definition, Support, Type, Update

_SECURITY = """
delegation.token.expiry.check.interval.ms LONG 3600000
delegation.token.expiry.time.ms LONG 86400000
delegation.token.max.lifetime.ms LONG 604800000
delegation.token.secret.key PASSWORD -
principal.builder.class CLASS org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder per-broker
sasl.client.callback.handler.class CLASS -
sasl.jaas.config PASSWORD - per-broker
sasl.kerberos.kinit.cmd STRING /usr/bin/kinit per-broker
sasl.kerberos.min.time.before.relogin LONG 60000 per-broker
sasl.kerberos.principal.to.local.rules LIST DEFAULT per-broker
sasl.kerberos.service.name STRING - per-broker
sasl.kerberos.ticket.renew.jitter DOUBLE 0.05 per-broker
sasl.kerberos.ticket.renew.window.factor DOUBLE 0.8 per-broker
sasl.login.callback.handler.class CLASS -
sasl.login.class CLASS -
sasl.login.connect.timeout.ms INT -
sasl.login.read.timeout.ms INT -
sasl.login.refresh.buffer.seconds SHORT 300 per-broker
sasl.login.refresh.min.period.seconds SHORT 60 per-broker
sasl.login.refresh.window.factor DOUBLE 0.8 per-broker
sasl.login.refresh.window.jitter DOUBLE 0.05 per-broker
sasl.login.retry.backoff.max.ms LONG 10000
sasl.login.retry.backoff.ms LONG 100
sasl.mechanism.controller.protocol STRING GSSAPI
sasl.oauthbearer.assertion.algorithm STRING RS256
sasl.oauthbearer.assertion.claim.aud STRING -
sasl.oauthbearer.assertion.claim.exp.seconds INT 300
sasl.oauthbearer.assertion.claim.iss STRING -
sasl.oauthbearer.assertion.claim.jti.include BOOLEAN false
sasl.oauthbearer.assertion.claim.nbf.seconds INT 60
sasl.oauthbearer.assertion.claim.sub STRING -
sasl.oauthbearer.assertion.file STRING -
sasl.oauthbearer.assertion.private.key.file STRING -
sasl.oauthbearer.assertion.private.key.passphrase PASSWORD -
sasl.oauthbearer.assertion.template.file STRING -
sasl.oauthbearer.jwt.retriever.class CLASS org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
sasl.oauthbearer.jwt.validator.class CLASS org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
security.providers STRING -
ssl.allow.dn.changes BOOLEAN false
ssl.allow.san.changes BOOLEAN false
ssl.engine.factory.class CLASS - per-broker
ssl.keymanager.algorithm STRING SunX509 per-broker
ssl.protocol STRING TLSv1.3 per-broker
ssl.provider STRING - per-broker
ssl.secure.random.implementation STRING - per-broker
ssl.trustmanager.algorithm STRING PKIX per-broker
"""

_PLUGINS = """
alter.config.policy.class.name CLASS -
client.quota.callback.class CLASS -
config.providers LIST "" cluster-wide
create.topic.policy.class.name CLASS -
kafka.metrics.reporters LIST ""
metric.reporters LIST org.apache.kafka.common.metrics.JmxReporter cluster-wide
"""

_TIERED = """
remote.log.storage.system.enable BOOLEAN false
"""

_TIERED_DETAILS = """
follower.fetch.last.tiered.offset.enable BOOLEAN false cluster-wide
log.local.retention.bytes LONG -2 cluster-wide
log.local.retention.ms LONG -2 cluster-wide
remote.fetch.max.wait.ms INT 500 cluster-wide
remote.list.offsets.request.timeout.ms LONG 30000 cluster-wide
remote.log.index.file.cache.total.size.bytes LONG 1073741824 cluster-wide
remote.log.manager.copier.thread.pool.size INT 10 cluster-wide
remote.log.manager.copy.max.bytes.per.second LONG 9223372036854775807 cluster-wide
remote.log.manager.copy.quota.window.num INT 11
remote.log.manager.copy.quota.window.size.seconds INT 1
remote.log.manager.expiration.thread.pool.size INT 10 cluster-wide
remote.log.manager.fetch.max.bytes.per.second LONG 9223372036854775807 cluster-wide
remote.log.manager.fetch.quota.window.num INT 11
remote.log.manager.fetch.quota.window.size.seconds INT 1
remote.log.manager.follower.thread.pool.size INT 2 cluster-wide
remote.log.manager.task.interval.ms LONG 30000
remote.log.manager.thread.pool.size INT 2
remote.log.metadata.custom.metadata.max.bytes INT 128
remote.log.metadata.manager.class.name STRING org.apache.kafka.server.log.remote.metadata.storage.\
TopicBasedRemoteLogMetadataManager
remote.log.metadata.manager.class.path STRING -
remote.log.metadata.manager.impl.prefix STRING rlmm.config.
remote.log.metadata.manager.listener.name STRING -
remote.log.reader.max.pending.tasks INT 100
remote.log.reader.threads INT 10 cluster-wide
remote.log.storage.manager.class.name STRING -
remote.log.storage.manager.class.path STRING -
remote.log.storage.manager.impl.prefix STRING rsm.config.
"""

_QUORUM = """
broker.heartbeat.interval.ms INT 2000
broker.session.timeout.ms INT 9000
controller.listener.names LIST -
controller.quorum.append.linger.ms INT 25
controller.quorum.auto.join.enable BOOLEAN false
controller.quorum.bootstrap.servers LIST ""
controller.quorum.election.backoff.max.ms INT 1000
controller.quorum.election.timeout.ms INT 1000
controller.quorum.fetch.max.bytes INT 1048576
controller.quorum.fetch.snapshot.max.bytes INT 1048576
controller.quorum.fetch.timeout.ms INT 2000
controller.quorum.request.timeout.ms INT 2000
controller.quorum.retry.backoff.ms INT 20
controller.quorum.voters LIST ""
controller.socket.timeout.ms INT 30000
initial.broker.registration.timeout.ms INT 60000
metadata.log.dir STRING -
metadata.log.max.record.bytes.between.snapshots LONG 20971520
metadata.log.max.snapshot.interval.ms LONG 3600000
metadata.log.segment.bytes INT 1073741824
metadata.log.segment.ms LONG 604800000
metadata.max.idle.interval.ms INT 500
metadata.max.retention.bytes LONG 104857600
metadata.max.retention.ms LONG 604800000
process.roles LIST -
"""

_OTHER_GROUPS = """
group.share.assignment.interval.ms INT 1000 cluster-wide
group.share.assignors LIST simple
group.share.delivery.count.limit INT 5
group.share.heartbeat.interval.ms INT 5000
group.share.max.assignment.interval.ms INT 15000
group.share.max.delivery.count.limit INT 10
group.share.max.heartbeat.interval.ms INT 15000
group.share.max.partition.max.record.locks INT 4000
group.share.max.record.lock.duration.ms INT 60000
group.share.max.session.timeout.ms INT 60000
group.share.max.share.sessions INT 2000
group.share.max.size INT 200
group.share.min.assignment.interval.ms INT 0
group.share.min.delivery.count.limit INT 2
group.share.min.heartbeat.interval.ms INT 5000
group.share.min.partition.max.record.locks INT 100
group.share.min.record.lock.duration.ms INT 15000
group.share.min.session.timeout.ms INT 45000
group.share.partition.max.record.locks INT 2000
group.share.record.lock.duration.ms INT 30000
group.share.session.timeout.ms INT 45000
group.streams.assignment.interval.ms INT 1000 cluster-wide
group.streams.heartbeat.interval.ms INT 5000
group.streams.initial.rebalance.delay.ms INT 3000
group.streams.max.assignment.interval.ms INT 15000
group.streams.max.heartbeat.interval.ms INT 15000
group.streams.max.session.timeout.ms INT 60000
group.streams.max.size INT 2147483647
group.streams.max.standby.replicas INT 2
group.streams.min.assignment.interval.ms INT 0
group.streams.min.heartbeat.interval.ms INT 5000
group.streams.min.session.timeout.ms INT 45000
group.streams.num.standby.replicas INT 0
group.streams.session.timeout.ms INT 45000
share.coordinator.append.linger.ms INT -1
share.coordinator.cached.buffer.max.bytes INT 1048588 cluster-wide
share.coordinator.load.buffer.size INT 5242880
share.coordinator.snapshot.update.records.per.snapshot INT 500
share.coordinator.state.topic.compression.codec INT 0
share.coordinator.state.topic.min.isr SHORT 2
share.coordinator.state.topic.num.partitions INT 50
share.coordinator.state.topic.replication.factor SHORT 3
share.coordinator.state.topic.segment.bytes INT 104857600
share.coordinator.threads INT 1
share.coordinator.write.timeout.ms INT 5000
share.fetch.purgatory.purge.interval.requests INT 1000
"""

_TRANSACTIONS = """
add.partitions.to.txn.retry.backoff.max.ms INT 100
add.partitions.to.txn.retry.backoff.ms INT 20
transaction.abort.timed.out.transaction.cleanup.interval.ms INT 10000
transaction.partition.verification.enable BOOLEAN true cluster-wide
transaction.state.log.load.buffer.size INT 5242880
transaction.two.phase.commit.enable BOOLEAN false
"""

_REPLICATION = """
alter.log.dirs.replication.quota.window.num INT 11
alter.log.dirs.replication.quota.window.size.seconds INT 1
cordoned.log.dirs LIST "" cluster-wide
early.start.listeners LIST -
num.replica.alter.log.dirs.threads INT -
replica.high.watermark.checkpoint.interval.ms LONG 5000
replica.socket.receive.buffer.bytes INT 65536
"""

_MACHINE = """
background.threads INT 10 cluster-wide
delete.records.purgatory.purge.interval.requests INT 1
fetch.purgatory.purge.interval.requests INT 1000
group.coordinator.append.linger.ms INT -1
group.coordinator.background.threads INT 2
group.coordinator.cached.buffer.max.bytes INT 1048588 cluster-wide
group.coordinator.threads INT 4
kafka.metrics.polling.interval.secs INT 10
log.cleaner.dedupe.buffer.size LONG 134217728 cluster-wide
log.cleaner.io.buffer.load.factor DOUBLE 0.9 cluster-wide
log.cleaner.io.buffer.size INT 524288 cluster-wide
log.cleaner.io.max.bytes.per.second DOUBLE 1.7976931348623157E308 cluster-wide
log.cleaner.threads INT 1 cluster-wide
log.dir.failure.timeout.ms LONG 30000
log.flush.offset.checkpoint.interval.ms INT 60000
log.flush.start.offset.checkpoint.interval.ms INT 60000
log.index.size.max.bytes INT 10485760 cluster-wide
log.preallocate BOOLEAN false cluster-wide
log.roll.jitter.hours INT 0
log.roll.jitter.ms LONG - cluster-wide
log.segment.delete.delay.ms LONG 60000 cluster-wide
metrics.num.samples INT 2
metrics.recording.level STRING INFO
metrics.sample.window.ms LONG 30000
num.io.threads INT 8 cluster-wide
num.network.threads INT 3 cluster-wide
num.recovery.threads.per.data.dir INT 2 cluster-wide
offsets.load.buffer.size INT 5242880
offsets.topic.compression.codec INT 0
producer.purgatory.purge.interval.requests INT 1000
socket.connection.setup.timeout.max.ms LONG 30000
socket.connection.setup.timeout.ms LONG 10000
socket.receive.buffer.bytes INT 102400
socket.send.buffer.bytes INT 102400
"""

_CONNECTIONS = """
max.connection.creation.rate INT 2147483647 cluster-wide
"""

_THROTTLES = """
replica.alter.log.dirs.io.max.bytes.per.second LONG - cluster-wide
"""

_INTERNAL = """
controller.performance.always.log.threshold.ms LONG 2000
controller.performance.sample.period.ms LONG 60000
group.consumer.regex.refresh.interval.ms INT 600000
group.share.initialize.retry.interval.ms INT 30000
group.share.persister.class.name STRING org.apache.kafka.server.share.persister.DefaultStatePersister
internal.metadata.delete.delay.millis LONG 60000
internal.metadata.log.segment.bytes INT -
internal.metadata.max.batch.size.in.bytes INT 8388608
log.initial.task.delay.ms LONG 30000
producer.id.expiration.check.interval.ms INT 600000
remote.log.index.file.cache.ttl.ms LONG 900000
remote.log.manager.task.retry.backoff.max.ms LONG 30000
remote.log.manager.task.retry.backoff.ms LONG 500
remote.log.manager.task.retry.jitter DOUBLE 0.2
server.max.startup.time.ms LONG 9223372036854775807
share.coordinator.cold.partition.snapshot.interval.ms INT 300000
share.coordinator.state.topic.prune.interval.ms INT 300000
unclean.leader.election.interval.ms LONG 300000
unstable.api.versions.enable BOOLEAN false
unstable.feature.versions.enable BOOLEAN false
"""

_PARTS = (
    (
        _SECURITY,
        Support.REFUSED,
        "Rota has no such part of TLS or SASL: only the default is accepted.",
    ),
    (_PLUGINS, Support.REFUSED, "Rota loads no Java classes."),
    (_TIERED, Support.REFUSED, "Rota has no tiered storage."),
    (
        _CONNECTIONS,
        Support.NO_EFFECT,
        "Not limited for all addresses together; the quota connection_creation_rate limits each of them.",
    ),
    (_TIERED_DETAILS, Support.NO_EFFECT, "A detail of tiered storage, which Rota does not have."),
    (
        _QUORUM,
        Support.NO_EFFECT,
        "Belongs to Kafka's own metadata quorum; Rota keeps metadata in its own store or in ZooKeeper.",
    ),
    (
        _OTHER_GROUPS,
        Support.NO_EFFECT,
        "Belongs to share and streams groups, which Rota does not have; it only bounds the configs of such a group.",
    ),
    (
        _TRANSACTIONS,
        Support.NO_EFFECT,
        "A detail of transactions that Rota decides otherwise: a timeout is exact, partitions are always verified.",
    ),
    (_REPLICATION, Support.NO_EFFECT, "A detail of Kafka's replication that Rota implements differently or omits."),
    (
        _MACHINE,
        Support.NO_EFFECT,
        "A detail of Kafka's threads, buffers and measurements; Rota's design has no such part.",
    ),
)


def _read(lines: str, support: Support, doc: str) -> Iterator[tuple[str, Definition]]:
    for line in lines.split("\n")[1:-1]:
        name, kind, default, *update = line.split()
        text = None if default == "-" else default.strip('"')
        when = Update(update[0]) if update else Update.READ_ONLY
        yield name, Definition(name, Type[kind], text, doc, update=when, support=support)


@cache
def others() -> dict[str, Definition]:
    """Return the properties of Kafka that have no effect in Rota, by name. Parses the lists at the first call."""
    return {name: definition for lines, support, doc in _PARTS for name, definition in _read(lines, support, doc)}


@cache
def foreign() -> dict[str, Definition]:
    """Return the names without effect in Rota that DescribeConfigs does not list.

    They are Kafka's internal ones, which a file of its tests may have, and those that are set only on a running broker.
    """
    return {
        **dict(
            _read(_THROTTLES, Support.NO_EFFECT, "A broker has one log directory: no replica moves to another one.")
        ),
        **dict(_read(_INTERNAL, Support.NO_EFFECT, "An internal property of Kafka, for its own tests.")),
    }
