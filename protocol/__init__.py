"""Encode and decode Kafka's messages. Pure: it imports no other package of Rota and does no I/O."""
