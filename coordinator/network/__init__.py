"""Sockets: the listener, connections, frames, requests that wait."""
