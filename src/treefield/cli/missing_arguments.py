"""What to say when a command lacks an argument: its name, its meaning, and a command line that has it."""

from __future__ import annotations

import glob
import pathlib
import shlex
from typing import TYPE_CHECKING

from typer.core import TyperCommand

if TYPE_CHECKING:
    import typer

# A value for the example, by the name of an argument or the first name of an option; otherwise the name itself.
_EXAMPLES = {
    "IN": "photo.png",
    "MASK": "mask.png",
    "LEFT": "left.png",
    "RIGHT": "right.png",
    "FIELDS": "fields.npz",
    "MODEL": "model.uai",
    "PROBLEM": "denoise",
    "FILES": "photo.png",
    "OUT": "out.png",
    "--num-disparities": "64",
    "--out": "out/",
}


def describe_missing(command: TyperCommand, context: typer.Context, words: list[str]) -> str:
    """The first argument that a command line lacks, and the same command line with all of them."""
    given, _, _ = command.make_parser(context).parse_args(list(words))
    needed = [parameter for parameter in command.params if parameter.required]
    arguments = [parameter for parameter in needed if parameter.param_type_name == "argument"]
    # a command of IN... OUT takes a single argument for OUT: count them instead
    values = [given.get(parameter.name) for parameter in command.params if parameter.param_type_name == "argument"]
    count = sum(len(value) if isinstance(value, tuple) else isinstance(value, str) for value in values)
    options = [parameter for parameter in needed if parameter not in arguments and given.get(parameter.name) is None]
    missing = [*arguments[count:], *options]
    first, name = missing[0], _name(missing[0])
    kind = "option" if first in options else "argument"
    filled = [word for parameter in missing for word in _filled(parameter, words)]
    example = shlex.join(["treefield", str(command.name), *words, *filled])
    return f"missing {kind} {name}: {_first_sentence(first.help)}; e.g. {example}"


def _name(parameter: typer.core.TyperArgument | typer.core.TyperOption) -> str:
    return str(parameter.metavar if parameter.param_type_name == "argument" else parameter.opts[0])


def _first_sentence(text: str) -> str:
    """The first sentence of a help text, without its full stop and its capital letter, unless that is an acronym."""
    sentence = text.split(". ")[0]
    sentence = sentence if sentence.endswith("...") else sentence.removesuffix(".")
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def _filled(parameter: typer.core.TyperArgument | typer.core.TyperOption, words: list[str]) -> list[str]:
    """The words that give a parameter an example of a value."""
    name = _name(parameter)
    value = _EXAMPLES.get(name, name)
    if name == "OUT" and any(pathlib.Path(word).is_dir() or glob.has_magic(word) for word in words):
        value = "out/"
    return [value] if parameter.param_type_name == "argument" else [name, value]
