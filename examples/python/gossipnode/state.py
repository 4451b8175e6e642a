"""How a run is, what has been trained since the last commit, and how a peer has got on since it joined."""

import time
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Optional

from .protocol import Answer

# Lines of a history, one for each such part of the time trained: some 4,000 in a month.
LINES_OF_A_RUN = 200


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

    def __add__(self, other: "Done") -> "Done":
        return Done(self.steps + other.steps, self.samples + other.samples, self.losses + other.losses, self.told + other.told)


class History:
    """Lines as `gossipnode run --history` writes them; what is not known is None."""

    def __init__(self) -> None:
        self.lines: List[Dict[str, Any]] = []
        self.accuracy: Optional[float] = None
        self._began, self._written, self._evaluated = time.monotonic(), 0.0, False

    def evaluated(self, accuracy: float) -> None:
        self.accuracy, self._evaluated = float(accuracy), True

    def due(self) -> bool:
        trained = time.monotonic() - self._began
        return self._evaluated or trained - self._written >= self._written / LINES_OF_A_RUN

    def add(self, peer: str, stats: Dict[str, Any]) -> None:
        self._written, self._evaluated = time.monotonic() - self._began, False
        self.lines.append({
            "peer": f"{stats.get('name') or 'peer'} {peer[-8:]}", "seconds": round(self._written, 6), "step": stats.get("steps", 0), "loss": stats.get("loss"),
            "accuracy": self.accuracy, "distance": stats.get("consensus_distance") if stats.get("exchanges") else None,
            "bytes": stats.get("bytes_sent", 0), "members": stats.get("members", 1)})
