"""A callback for Lightning's Trainer; lightning or pytorch_lightning has to be installed."""

import contextlib
import sys
from typing import Any, Dict, List, Optional

if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning import Callback
else:
    from lightning.pytorch import Callback

from .flock import Flock
from .joining import join
from .optimizer import Attached


class FlockCallback(Callback):
    """Trains a LightningModule together with others: Trainer(…, callbacks=[FlockCallback(run="digits", peers=[…])]).

    It takes join's arguments. Commits come with the optimizer's steps, and one before each checkpoint. The training
    ends when the flock's work is done, or the Trainer's. With key="FILE", fit(ckpt_path=…) is the same peer as before;
    without, it is a new one. accuracy names what of the module's log is the accuracy. .flock is the flock."""

    def __init__(self, merge: bool = False, accuracy: str = "val_acc", **options: Any):
        self._merge, self._accuracy, self._options = merge, accuracy, options
        self.flock: Optional[Flock] = None
        self._attached: List[Attached] = []
        self._standing: Dict[str, Any] = {}
        self._within = contextlib.ExitStack()  # the flock, and the optimizers attached to it

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        options: Dict[str, Any] = {"resume": self._standing or None, "ranks": trainer.world_size > 1, **self._options}
        self.flock = self._within.enter_context(join(pl_module, **options))
        self._attached = [self.flock.attach(getattr(optimizer, "optimizer", optimizer)) for optimizer in trainer.optimizers]
        for attached in self._attached:
            self._within.callback(attached.remove)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        for attached in self._attached[:1]:
            attached.more += _size(batch)  # several batches, where they are accumulated

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        for attached in self._attached[:1]:
            attached.loss = None if loss is None else loss.detach()
        if self.flock and self.flock.state.over:
            trainer.should_stop = True

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if self.flock and self._accuracy in trainer.callback_metrics:
            self.flock.evaluated(trainer.callback_metrics[self._accuracy])

    def state_dict(self) -> Dict[str, Any]:
        """Counts and the peer's public name, neither its key nor an address: checkpoints are given away."""
        if self.flock and not self.flock._closed:
            self.flock.commit()  # the module's tensors in the checkpoint are those that this changes
        return dict(self.flock.standing if self.flock else self._standing)

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self._standing = dict(state_dict)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self.flock:
            self.flock.close(merge=self._merge)
            self._within.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._within.__exit__(type(exception), exception, None)  # RankLost, if another process has died


def _size(batch: Any) -> int:
    """How many samples a batch has: the length of the first tensor in it."""
    if hasattr(batch, "shape"):
        return int(batch.shape[0]) if batch.shape else 1
    parts = list(batch.values()) if isinstance(batch, dict) else list(batch) if isinstance(batch, (list, tuple)) else []
    return _size(parts[0]) if parts else 0
