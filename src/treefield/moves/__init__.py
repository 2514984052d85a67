"""How T-ILS jumps and accepts.

A jump is a function ``jump(x, mrf, rng)`` that returns a changed copy of the labelling `x`. An acceptance is a function
``accept(mrf, x, y, rng)`` that makes `x`, in place, the labelling from which the search goes on (`x` itself, `y`, or a
mixture) and returns the change of energy, or None for a backtrack. Anything with that signature will do.
"""

from treefield.moves.accept import Always, Greedy, Metropolis, PerComponent
from treefield.moves.balls import BallJump
from treefield.moves.boxes import BoxJump
from treefield.moves.heat import HeatJump
from treefield.moves.message_jump import MessageJump
from treefield.moves.mixed import MixedJump
from treefield.moves.reset import BetaJump, LevyJump, UniformJump
from treefield.moves.segments import SegmentJump
from treefield.moves.unvisited import Unvisited

__all__ = [
    "Always",
    "BallJump",
    "BetaJump",
    "BoxJump",
    "Greedy",
    "HeatJump",
    "LevyJump",
    "MessageJump",
    "Metropolis",
    "MixedJump",
    "PerComponent",
    "SegmentJump",
    "UniformJump",
    "Unvisited",
]
