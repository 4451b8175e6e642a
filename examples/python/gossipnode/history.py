"""How a peer has got on, as `gossipnode run --history` writes it."""

import time
from typing import Any, Dict, List, Optional

# A line for each such part of the time trained: some 4,000 in a month.
LINES_OF_A_RUN = 200


class History:
    """Lines with the keys of --history; what is not known is None."""

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
