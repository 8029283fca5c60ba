"""The asyncio client library. It comes with its own release; nothing is exported yet."""
