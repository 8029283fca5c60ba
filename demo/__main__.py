"""`python -m rota.demo`."""

from rota.demo.scenario import main

if __name__ == "__main__":
    main()
