"""One consumer group as a state machine. Pure: no clock, no socket, no loop, no logging."""
