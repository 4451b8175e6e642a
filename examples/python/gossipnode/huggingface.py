"""A callback for the Trainer of Hugging Face's transformers, which has to be installed."""

import os
from pathlib import Path
from typing import Any, Dict, Optional

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from .flock import Flock
from .joining import join
from .optimizer import Attached
from .protocol import Refused

NAME = "gossipnode"  # of what a checkpoint's trainer_state.json has of the flock: counts and the peer's public name


class FlockCallback(TrainerCallback):
    """Trains the Trainer's model together with others: Trainer(…, callbacks=[FlockCallback(run="digits", peers=[…])]).

    It takes join's arguments. Commits come with the optimizer's steps, and one before each checkpoint and evaluation.
    The training ends when the flock's work is done, or the Trainer's. With key="FILE", outside of the output folder, a
    Trainer that resumes from a checkpoint is the same peer; without, it is a new one. .flock is the flock."""

    def __init__(self, merge: bool = False, accuracy: str = "eval_accuracy", **options: Any):
        self._merge, self._accuracy, self._options = merge, accuracy, options
        self.flock: Optional[Flock] = None
        self._attached: Optional[Attached] = None

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any = None, optimizer: Any = None, **_: Any) -> None:
        self.leave()
        if args.load_best_model_at_end:
            raise Refused("settings", "load_best_model_at_end puts an older model in place of the flock's", "leave it out, and choose among the checkpoints afterwards")
        key = self._options.get("key", os.environ.get("GOSSIPNODE_KEY"))
        if key is not None and Path(key).resolve().is_relative_to(Path(args.output_dir).resolve()):
            raise Refused("settings", f"the key {key} is in {args.output_dir}, which may be pushed to a hub", "keep it in a folder of its own")
        options: Dict[str, Any] = {"resume": (state.stateful_callbacks or {}).get(NAME), "ranks": args.world_size > 1, **self._options}
        self.flock = join(model, **options)
        self._attached = self.flock.attach(getattr(optimizer, "optimizer", optimizer), args.train_batch_size * args.gradient_accumulation_steps)
        self._stand(state)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if control.should_save or control.should_evaluate:
            self._stand(state)
        if self.flock and self.flock.state.over:
            control.should_training_stop = True

    on_epoch_end = on_step_end

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Optional[Dict[str, Any]] = None, **_: Any) -> None:
        if self._attached and logs and "loss" in logs:
            self._attached.loss = float(logs["loss"])

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, metrics: Optional[Dict[str, Any]] = None, **_: Any) -> None:
        if self.flock and metrics and self._accuracy in metrics:
            self.flock.evaluated(metrics[self._accuracy])

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self.flock and self._attached:
            self.flock.close(merge=self._merge)
            self._attached.remove()

    def leave(self) -> None:
        """Leaves the flock of a training that has ended with an error, without what was not handed over."""
        if self.flock and self._attached:
            self.flock._end(closed=True, failed=True)
            self._attached.remove()

    def _stand(self, state: TrainerState) -> None:
        """Has the next checkpoint say which steps are behind its model."""
        if self.flock and self._attached:
            self.flock.commit()
            state.stateful_callbacks = {**(state.stateful_callbacks or {}), NAME: self.flock.standing}
