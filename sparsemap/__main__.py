"""`python -m sparsemap` is the same as `sparsemap`."""

from .cli.main import main

if __name__ == "__main__":
    main()
