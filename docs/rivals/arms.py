"""The arms of the race: which script, with which settings, at which rate (the best of a ladder)."""

from dataclasses import dataclass, field


@dataclass
class Arm:
    script: str
    rate: float
    venv: str
    settings: dict = field(default_factory=dict)
    helper: str = ""  # a script whose process is no member: a lighthouse, a server
    speakers: tuple = (0, 1, 2, 3)  # the ranks that say how it went: the helper's (-1), where a server speaks for all


def swarm(target, local, codec="none", matchmaking=3.0):
    """hivemind.Optimizer with a target batch of so many rows."""
    return Arm("swarm", 0.1, "hivemind", {"target": target, "local": local, "codec": codec, "matchmaking": matchmaking, "delayed": True})


ARMS = {
    "gossipnode": Arm("ours", 0.1, "torchft", {"codec": "lattice6+4"}),
    "gossipnode raw": Arm("ours", 0.1, "torchft", {"codec": "raw"}),
    "ddp": Arm("ddp", 0.1, "torchft"),
    "hivemind 4096": swarm(4096, False, matchmaking=1.0),
    "hivemind 4096 local": swarm(4096, True),
    "hivemind 4096 local 8bit": swarm(4096, True, "8bit"),
    "flower 240": Arm("federated", 0.1, "flwr", {"every": 240}, "federated", (-1,)),
    "flower 60": Arm("federated", 0.1, "flwr", {"every": 60}, "federated", (-1,)),
    "torchft local-sgd 16": Arm("fault_tolerant", 0.1, "torchft", {"every": 16}, "lighthouse"),
    "torchft local-sgd 64": Arm("fault_tolerant", 0.1, "torchft", {"every": 64}, "lighthouse"),
    "torchft diloco 16": Arm("fault_tolerant", 0.05, "torchft", {"every": 16, "outer": 0.7}, "lighthouse"),
    "torchft diloco 64": Arm("fault_tolerant", 0.05, "torchft", {"every": 64, "outer": 0.7}, "lighthouse"),
}
