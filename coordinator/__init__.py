"""The broker: a group coordinator that speaks Apache Kafka's protocol."""
