"""`python -m rota.cli`: the same as the command `rota`."""

import sys

from rota.cli.main import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
