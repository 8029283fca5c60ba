"""Bytes to typed messages and back. Pure: imports nothing of ours and no I/O."""
