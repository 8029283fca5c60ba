"""`python -m rota.coordinator`: the same as the command `rota`."""

from rota.coordinator.admin.cli import main

if __name__ == "__main__":
    main()
