"""The command has the defaults of the Python functions."""

import inspect

import pytest

import treefield as tf
from treefield.cli.commands import ising_command, restore_commands, segment_command, stereo_command

COMMANDS = {
    "denoise": restore_commands.denoise,
    "inpaint": restore_commands.inpaint,
    "segment": segment_command.segment,
    "stereo": stereo_command.stereo,
    "ising": ising_command.ising,
}


@pytest.mark.parametrize("name", COMMANDS)
def test_options_have_the_defaults_of_the_keywords_of_the_same_name(name):
    keywords = inspect.signature(getattr(tf, name)).parameters
    options = inspect.signature(COMMANDS[name]).parameters
    files = {"image", "mask", "left", "right", "fields", "num_disparities"}
    shared = (set(keywords) & set(options)) - files
    assert shared >= {"time_limit", "tol"}
    for option in shared:
        assert options[option].default == keywords[option].default, option
