"""A consumer group of the consumer protocol (KIP-848) as a state machine. Pure: no I/O, no clock."""
