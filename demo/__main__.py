"""`python -m rota.demo`."""

from rota.demo.scenario import main
from rota.transport.standard_streams import open_standard_streams

if __name__ == "__main__":
    open_standard_streams()
    main()
