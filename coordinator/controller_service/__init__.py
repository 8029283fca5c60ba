"""The I/O of the controller: its election, when it decides, and how its decisions are written to the store."""
