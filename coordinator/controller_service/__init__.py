"""The controller's I/O: who is the controller, when it decides, and how its decisions are written to the store."""
