"""An optimizer whose steps a flock counts, with float32 copies of what has a smaller type."""

from typing import Any, Callable, List, Tuple, cast


class Attached:
    """What flock.attach returns. While it is there, the optimizer works on the master copy of each
    bfloat16 or float16 parameter, so that no step is too small for it: before a step the gradient
    goes over, and the parameter keeps none; after it the parameter is the rounded master."""

    def __init__(self, optimizer: Any, masters: List[Tuple[Any, Any]], samples: int, stepped: Callable[[int, Any], Any]):
        self._optimizer, self._masters, self._stepped = optimizer, masters, stepped
        self.samples, self.more, self.loss = samples, 0, cast(Any, None)  # of each step; of the next one besides, and its loss if it is known
        self._hooks = [optimizer.register_step_pre_hook(self._before), optimizer.register_step_post_hook(self._after)]
        self._swap(masters)

    def remove(self) -> None:
        """Gives the optimizer its own parameters back, and counts no more."""
        for hook in self._hooks:
            hook.remove()
        self._swap([(master, low) for low, master in self._masters])

    def _swap(self, pairs: List[Tuple[Any, Any]]) -> None:
        instead = dict(pairs)
        for group in self._optimizer.param_groups:
            group["params"] = [instead.get(p, p) for p in group["params"]]
        for old, new in pairs:
            if old in self._optimizer.state:
                state = self._optimizer.state[new] = self._optimizer.state.pop(old)
                for name, value in state.items():  # a checkpoint's, say, has been rounded like the parameter
                    if new.element_size() > old.element_size() and getattr(value, "dtype", None) == old.dtype:
                        state[name] = value.to(new.dtype)

    def _before(self, *_: Any) -> None:
        for low, master in self._masters:
            master.grad, low.grad = None if low.grad is None else low.grad.to(master), None

    def _after(self, *_: Any) -> None:
        for low, master in self._masters:
            low.detach().copy_(master.detach())
        samples, loss, self.more, self.loss = self.samples + self.more, self.loss, 0, None
        self._stepped(samples, loss)
