"""Sockets: the listener, connections, frames, request memory."""
