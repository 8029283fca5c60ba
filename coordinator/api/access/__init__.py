"""Access control of the APIs: which operation on which resource each needs, and how a denied one answers."""
