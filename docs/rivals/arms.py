"""The arms of the race: which script, with which settings, at which rate (the best of a ladder)."""

from dataclasses import dataclass, field


@dataclass
class Arm:
    script: str
    rate: float
    venv: str
    settings: dict = field(default_factory=dict)
    helper: str = ""  # a script whose process is no member: a lighthouse, a server
    processes: int = 4
    judged: int = -1  # the one process that speaks for all, where there is one

    def speaks(self, rank):
        return self.judged in (-1, rank)


ARMS = {
    "gossipnode": Arm("ours", 0.05, "torchft", {"codec": "lattice6+4"}),
    "ddp": Arm("ddp", 0.1, "torchft"),
    "torchft local-sgd 16": Arm("fault_tolerant", 0.1, "torchft", {"every": 16}, "lighthouse"),
    "torchft local-sgd 64": Arm("fault_tolerant", 0.1, "torchft", {"every": 64}, "lighthouse"),
    "torchft diloco 16": Arm("fault_tolerant", 0.1, "torchft", {"every": 16, "outer": 0.7}, "lighthouse"),
    "torchft diloco 64": Arm("fault_tolerant", 0.1, "torchft", {"every": 64, "outer": 0.7}, "lighthouse"),
}
