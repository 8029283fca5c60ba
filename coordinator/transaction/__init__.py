"""One transactional id as a state machine, and its records. Pure: no clock, no socket, no logging."""
