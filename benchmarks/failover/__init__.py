"""How long clients wait when brokers of a cluster die, freeze or restart, on Rota and on Apache Kafka.

    python -m benchmarks.failover                          every scenario once, on three brokers of each
    python -m benchmarks.failover leader rolling           two scenarios
    python -m benchmarks.failover --rounds 5 --rota-only leader

Rota's three brokers have a ZooKeeper, Kafka's three a KRaft controller, each in a process of its own. The clusters
run one after the other, each for all scenarios: after each one its brokers are started again, and the next one
has a new topic and a new group. Clients are confluent-kafka at its defaults; where a leader is killed also Kafka's Java
producer, kafka-python and Rota's. A network that is cut and machines that lose their power are measured on Rota only.
Both brokers have their defaults but for `group.initial.rebalance.delay.ms=0`,
and `log.flush.interval.messages=1` where the power fails.
"""
