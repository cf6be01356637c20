"""`python -m discreet` is the command `discreet`."""

from discreet.cli import run

if __name__ == "__main__":
    run()
