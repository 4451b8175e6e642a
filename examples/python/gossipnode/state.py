"""How a run is, and what has been trained since the last commit."""

from dataclasses import dataclass, replace
from typing import Any

from .protocol import Answer


@dataclass(frozen=True)
class State:
    """How the run was at the last commit."""

    over: bool = False  # the flock has done its work: stop, and close
    progress: float = 0.0  # of the flock, 0 to 1; let learning-rate schedules follow it
    members: int = 1
    joined: bool = False  # another member has been met, now or before
    quantum: int = 1  # steps until the next commit
    steps: int = 0  # of this peer
    flock_steps: int = 0
    merged: bool = False  # the model is the one of all, the same for everybody
    waited: float = 0.0  # seconds that the last commit took

    def after(self, answer: Answer) -> "State":
        known = {k: answer[k] for k in self.__dataclass_fields__ if k in answer}
        return replace(self, **{**known, "waited": answer.get("waited_us", 0) / 1e6, "joined": self.joined or answer.get("joined", False)})


@dataclass
class Done:
    """The steps since the last commit."""

    steps: int = 0
    samples: int = 0
    losses: Any = 0.0  # the sum of those that were told
    told: int = 0

    def plus(self, other: "Done") -> "Done":
        return Done(self.steps + other.steps, self.samples + other.samples, self.losses + other.losses, self.told + other.told)
