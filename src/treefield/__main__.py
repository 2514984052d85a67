"""`python -m treefield`: the command `treefield`."""

from treefield.cli import command

if __name__ == "__main__":
    command()
