"""Trains a model together with others, each on its own data, without a server.

    flock = gossipnode.join(model, run="digits", peers=["HOST:4001"])
    ...                                     # the training loop as it is, and after each step:
    flock.step(samples=len(x), loss=loss)
    flock.close()

The program gossipnode takes part in the flock as a process of its own, a sidecar; the parameters
are in memory that both share. docs/BRIDGE.md is what the two say to each other."""

from .flock import Flock
from .joining import join
from .protocol import Lost, Refused
from .ranks import RankLost
from .state import State

__all__ = ["Flock", "Lost", "RankLost", "Refused", "State", "join"]
