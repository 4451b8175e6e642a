"""Several processes that are one peer: the first takes part in the flock, and tells the others all it hears."""

import contextlib
import datetime
import pickle
import warnings
from typing import Any, Callable, List, Optional, cast

from .protocol import Answer
from .saving import standing
from .sidecar import Memory, T
from .state import Done

# A process that dies is noticed at once, by its connections; this is for one that stands still.
PATIENCE = datetime.timedelta(minutes=30)


class RankLost(RuntimeError):
    """Another process of this peer has died, stands still, or has ended its part. The peer has left the flock:
    end this process too, and start all of them again, from what was saved."""


def is_loss(err: Optional[BaseException]) -> bool:
    """Tells whether torch.distributed says by an error that a process has gone."""
    return isinstance(err, RuntimeError) and (type(err).__name__.startswith("Dist") or any(w in str(err) for w in ("gloo", "NCCL", "Connection closed by peer")))


def lost(err: BaseException) -> RankLost:
    return RankLost(f"another process of this peer has died, stands still or has ended its part, and so the peer has left its flock: start all its processes again ({err})")


class Ranks:
    """The processes, in the order of a group of torch.distributed. What they say to each other goes through a gloo
    group of their own, so that a dead one is an error in all others, whatever the backend of the gradients."""

    def __init__(self, torch: Any, group: Any):
        dist = torch.distributed
        self._torch, self._dist = torch, dist
        members = dist.get_process_group_ranks(group)
        self.count, self._source = len(members), members[0]
        self.first = dist.get_rank() == members[0]
        if dist.get_backend(group) == "gloo":  # else one that has died already would be waited for
            try:
                dist.barrier(group)
            except RuntimeError as err:
                raise lost(err) from err
        self._group = dist.new_group(members, timeout=PATIENCE, backend="gloo", use_local_synchronization=True)

    def told(self, act: Callable[[], T]) -> T:
        """What act does in the first process, in all: its result, or the error that it raises."""
        said: List[Any] = [None, None]  # the result, or the error
        try:
            if self.first:
                try:
                    said[0] = act()
                except Exception as err:
                    said[1] = _portable(err)
            self._together(lambda: self._dist.broadcast_object_list(said, src=self._source, group=self._group))
        except BaseException:  # a signal too: the others must not wait
            self.end(failed=True)
            raise
        if said[1] is not None:
            self._together(lambda: self._dist.barrier(self._group))  # all have it, before one ends
            raise said[1]
        return cast(T, said[0])

    def heard(self, op: str, hear: Callable[[], Optional[Answer]], memory: Memory) -> Answer:
        """What the first process hears from its sidecar, in all, and what that has put into the memory. Its key stays there."""
        own: Answer = {}

        def first() -> Answer:
            own.update(hear() or {})
            return {**own, "resume": standing(own["resume"])} if "resume" in own else own

        answer = self.told(first)
        if op in ("hello", "commit", "leave"):  # after which the memory holds new values
            values = self._torch.frombuffer(memory, dtype=self._torch.float32)
            self._together(lambda: self._dist.broadcast(values, src=self._source, group=self._group))
        return own or answer

    def sum(self, done: Done) -> Done:
        """What all have done in the same steps."""
        mine = self._torch.tensor([done.steps, done.samples, float(done.losses), done.told], dtype=self._torch.float64)
        all_of = [self._torch.empty_like(mine) for _ in range(self.count)]
        self._together(lambda: self._dist.all_gather(all_of, mine, group=self._group))
        steps, samples, losses, told = self._torch.stack(all_of).T.tolist()
        if len(set(steps)) > 1:
            self.end(failed=True)
            raise RankLost(f"the processes of this peer have made {[int(s) for s in steps]} steps since the last commit: all have to call step, commit, save and close equally often")
        return Done(done.steps, int(sum(samples)), sum(losses), int(sum(told)))

    def _together(self, act: Callable[[], Any]) -> None:
        if self._group is None:
            raise RankLost("this process has ended its part in the peer: join again, in all its processes")
        try:
            act()
        except RuntimeError as err:
            self.end(failed=True)
            raise lost(err) from err

    def end(self, failed: bool = False) -> None:
        """Ends what the processes have in common. If it has failed, that is an error in the others."""
        if self._group is None:
            return
        group, self._group = self._group, None
        with contextlib.suppress(RuntimeError, ValueError, AssertionError):  # the others, or torch's, have ended
            if not failed:
                self._dist.barrier(group)  # the last values have arrived
            self._dist.destroy_process_group(group)


def _portable(err: Exception) -> Exception:
    """The error, or one with its text if it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(err))
        return err
    except Exception:
        return RuntimeError(f"{type(err).__name__}: {err}")


def ranks_of(torch: Any, model: Any, ranks: Any) -> Optional[Ranks]:
    """The processes that are one peer by join's argument ranks, or by the model; None if it is this one alone."""
    if ranks and torch is None:
        raise ValueError("ranks: of a torch module only")
    dist = getattr(torch, "distributed", None)
    if dist is None or not dist.is_available() or not dist.is_initialized():
        if ranks:
            raise ValueError("ranks: torch.distributed is not initialized: call torch.distributed.init_process_group first")
        return None
    if ranks is None and isinstance(model, torch.nn.parallel.DistributedDataParallel):
        ranks = model.process_group
    if ranks is None and dist.get_world_size() > 1:
        warnings.warn(f"each of the {dist.get_world_size()} processes of torch.distributed joins as a peer of its own: ranks=True makes them one, ranks=False says that it is meant", stacklevel=4)
    group = dist.group.WORLD if ranks is True else ranks
    return Ranks(torch, group) if group and dist.get_world_size(group) > 1 else None
