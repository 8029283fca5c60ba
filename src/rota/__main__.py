"""`python -m rota`: the command `rota`, by its name, as it finds this package by its name."""

from importlib import import_module

if __name__ == "__main__":
    import_module("rota.coordinator.admin.cli").main()
