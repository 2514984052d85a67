"""The commands, imported by `treefield.cli.app` when they are run."""
