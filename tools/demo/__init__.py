"""`make demo`: the main job in under a minute, with real clients on real text."""
