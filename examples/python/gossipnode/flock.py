"""A model's place in a flock: join, step, close."""

import contextlib
import functools
import math
import numbers
import os
import time
import warnings
import weakref
from typing import Any, Callable, Dict, List, Mapping, NoReturn, Optional

from . import saving, sidecar
from .layout import ArrayRange, Range, TensorRange
from .optimizer import Attached
from .protocol import Answer, Connection, Lost, Refused
from .ranks import RankLost, Ranks, is_loss, lost
from .sidecar import T
from .state import Done, History, State

RESTARTS = 3  # lives that may fail one after the other, without a commit between
MOST_STEPS = 1 << 16  # of one commit
SAY_EVERY = 10.0  # seconds, while others are waited for


def _number(name: str, value: Any) -> Any:
    """A number, or a tensor of one value, which is not looked at."""
    shape = getattr(value, "shape", ())
    if isinstance(value, numbers.Real) or hasattr(value, "__float__") and math.prod(shape) == 1:
        return value.detach() if hasattr(value, "detach") else value
    raise TypeError(f"{name} is a {type(value).__name__}{list(shape) if shape else ''}: want a number, or a tensor of one")


class Flock(contextlib.AbstractContextManager["Flock"]):
    """What join returns; a context manager, which closes it. For one thread, that of the trainer,
    and the process that made it: in a forked child it only raises."""

    _all: "weakref.WeakSet[Flock]" = weakref.WeakSet()

    def __init__(self, ranges: List[Range], hello: Dict[str, Any], binary: Optional[sidecar.Path], every: Optional[int], on_lost: str,
                 overlap: bool, log: sidecar.Log, module: Any, ranks: Optional[Ranks], saved: Mapping[str, Any]):
        self._ranges, self._hello, self._module, self._ranks = ranges, hello, module, ranks
        self._tensors = [r for r in ranges if isinstance(r, TensorRange)]
        self._every, self._on_lost, self._overlap, self._binary, self._log = every, on_lost, overlap, binary, log
        self._owner, self._failures = os.getpid(), 0
        self._sidecar: Optional[sidecar.Sidecar] = None
        self._closed = self._alone = False
        self._resume: Dict[str, Any] = {"resume": saved["flock"]} if saved else {}  # for the next sidecar
        self._history = History()
        self.state = State()
        self.addresses: List[str] = []
        self.start = ""  # how it came to its model: founder, joined, copied or resumed
        self._held = {id(r._tensor) for r in self._tensors}
        if any(self._held & other._held and not other._closed for other in Flock._all):
            raise Refused("layout", "the model is in a flock already", "close that one first, or join with a copy: copy.deepcopy(model)")
        self._memory, offset = sidecar.Memory(sum(r.count for r in ranges)), 0
        for r in ranges:
            r.place(self._memory, offset, saved.get("model"))
            offset += 4 * r.count
        self._begin()
        Flock._all.add(self)

    def __repr__(self) -> str:
        how = "closed" if self._closed else "alone, since its sidecar has died" if self._alone else f"{self.state.members} members"
        return f"<gossipnode.Flock {self._hello.get('run', '')!r}: {how}, {self.state.steps} steps, {self.state.progress:.0%} of the run>"

    @property
    def address(self) -> str:
        """What others give as peers: the first that is not of this machine alone, if one is."""
        return next((a for a in self.addresses if "/127." not in a and "/::1/" not in a), (self.addresses or [""])[0])

    @property
    def arrays(self) -> Dict[str, Any]:
        """The values of a model that was a dict of arrays, by name: views, to train in place."""
        return {r.name: r.array for r in self._ranges if isinstance(r, ArrayRange)}

    def step(self, samples: int = 0, loss: Any = None) -> State:
        """Counts a step that the optimizer has made, of so many samples, and hands the steps to the
        flock when it is time. loss may be a tensor: it is looked at in a commit only."""
        self._mine()
        told = loss is not None
        self._since += Done(1, _number("samples", samples), _number("loss", loss) if told else 0.0, int(told))
        if self._since.steps >= (self._every or min(self.state.quantum, MOST_STEPS)):
            self._survive(self._post if self._overlap else self._commit)
        elif self._posted and self._sidecar and not self._ranks and self._sidecar.connection.has_answer():
            self._survive(self._settle)  # several would not all see it at the same step
        return self.state

    def attach(self, optimizer: Any, samples: int = 0) -> Attached:
        """Has a torch optimizer call step after each of its own, until .remove() of what this
        returns: look at flock.state.over in the loop. Parameters in bfloat16 or float16 have
        master copies then, so that steps too small for these types are not lost."""
        masters = [t.master() for t in self._tensors if t.is_low]
        return Attached(optimizer, masters, samples, lambda samples, loss: None if self._closed else self.step(samples, loss))

    def commit(self) -> State:
        """Hands over now what has been trained, and fetches the flock's model."""
        self._survive(self._commit)
        return self.state

    def wait(self, members: int, timeout: Optional[float] = None) -> State:
        """Waits until so many are in the flock, this one included, before the training begins; TimeoutError
        if they have not come within so many seconds."""
        began = said = time.monotonic()
        while self.commit().members < members and not (self.state.over or self._alone):
            now, here = time.monotonic(), f"{self.state.members} of {members} members are here"
            if self._first(lambda: timeout is not None and now - began >= timeout):
                raise TimeoutError(f"{here} after {timeout or 0:g} seconds: start the others, check peers=, or wait longer by timeout=")
            if said == began or now - said >= SAY_EVERY:
                sidecar.logger.warning("waiting: %s; others join %s", here, self.address)
                said = now
            time.sleep(0.1)
        return self.state

    def save(self, path: sidecar.Path, optimizer: Any = None, scheduler: Any = None) -> None:
        """Writes the model as it is in the flock to a file: a state_dict in safetensors, float32. With an
        optimizer it is a file of torch.save instead, which join(resume=path) goes on from exactly, with the
        state of the optimizer, and of the scheduler if given. Of a peer of several processes all call it, and
        the first writes. Neither file holds the peer's key."""
        self.commit()
        at = os.path.abspath(os.fspath(path))
        self._survive(lambda: self._first(lambda: saving.write(at, self._save, self._module, self._ranges, optimizer, scheduler, self.standing)))
        if self._alone:
            raise Lost("nothing is saved: the sidecar has died, and this model trains alone; save it by torch.save")

    def _save(self, path: str) -> None:
        assert self._sidecar
        self._sidecar.hear("save", lambda connection: connection.ask({"op": "save", "path": path}))

    @property
    def standing(self) -> Dict[str, Any]:
        """Which steps are behind the model, and whose they are: with a checkpoint of your own, join(resume=...) goes
        on from it. It has neither a key nor an address, so it may be in files that others see."""
        return saving.standing(self._resume.get("resume", {}))

    def history(self) -> List[Dict[str, Any]]:
        """How this peer has got on since it joined: dicts with peer, seconds, step, loss, accuracy, distance (of the
        models, estimated), bytes (sent) and members, as the lines of `gossipnode run --history`. What is not known is
        None. Of a peer of several processes the first has it."""
        return [dict(line) for line in self._history.lines]

    def evaluated(self, accuracy: float) -> None:
        """Tells the accuracy on held-out data, for history."""
        self._history.evaluated(accuracy)

    def _note(self, last: bool = False) -> None:
        """Adds a line to the history if one is due; a sidecar that has died is for the next commit to find."""
        if self._sidecar and self._sidecar.process and not self._posted and (last or self._history.due()):
            with contextlib.suppress(OSError, Refused):
                stats = self._sidecar.connection.ask({"op": "stats"})["stats"]
                self._history.add(self.standing.get("peer", ""), stats)

    def stats(self) -> Dict[str, Any]:
        """What the peer knows of itself: steps, members, exchanges, bytes and others."""
        return dict((self._survive(lambda: self._ask("stats")) or {}).get("stats", {}))

    def close(self, merge: bool = False) -> State:
        """Commits what is left, leaves the flock in good order and gives the model its values.
        May be called again; the model goes on working. With merge, the model is to be the one of
        all, which needs final="merge" of all who joined, and time: state.merged tells."""
        if self._closed:
            return self.state
        self._mine()
        try:
            if not self._alone:
                self._commit()
                self._note(last=True)
                self._heed(self._ask("leave"))
            self._end(closed=True)
        except Lost as err:
            if self._on_lost == "raise":
                raise
            steps = (self._since + (self._posted or Done())).steps
            warnings.warn(f"the flock was left without the last {steps} steps: {err}", stacklevel=2)
        finally:
            self._end(closed=True, failed=True)  # does nothing after an end in good order
        if not self.state.joined:
            warnings.warn("nobody else was ever met: this model was trained on the data here alone; members=2 in join waits for another", stacklevel=2)
        if merge and not self.state.merged:
            warnings.warn('the model is not merged: all members have to join with final="merge", and to be there in the end', stacklevel=2)
        return self.state

    def __exit__(self, failed: Any, err: Any, *_: Any) -> None:
        if failed is None:
            self.close()
            return
        self._end(closed=True, failed=True)  # what was half done is not committed; the peer leaves in good order
        if self._ranks and is_loss(err) and not isinstance(err, RankLost):
            raise lost(err) from err

    def __reduce__(self) -> NoReturn:
        raise TypeError("a flock is of its process, and holds the key of its peer: it cannot be pickled")

    def _mine(self) -> None:
        if os.getpid() != self._owner:
            raise RuntimeError(f"this flock is of process {self._owner}: use it there, or join in this one")
        if self._closed:
            raise Refused("closed", "the flock is closed", "join again")

    def _begin(self) -> None:
        """Begins a life in the flock with the model as it is: the steps are in the values to begin with."""
        self._since, self._spent = Done(), 0.0
        self._posted: Optional[Done] = None  # of a commit that has not been answered, or its answer not heeded, yet
        self._answer: Optional[Answer] = None  # its answer, until that is heeded: a signal may come between
        self._sidecar = life = sidecar.Sidecar()
        self._finalizer = weakref.finalize(self, life.end)
        try:
            self._first(lambda: life.start(self._binary, self._memory, self._log))
            hello = {**self._hello, **self._resume}
            known = [a.rpartition("/p2p/")[0] for a in self.addresses if "/p2p-circuit" not in a]
            try:  # another life listens where others know the peer to be, if it can
                answer = self._ask(**{**hello, "listen": known or hello["listen"]})
            except Refused as err:
                if not known or err.fatal:
                    raise
                answer = self._ask(**hello)
            self.addresses, self.start = answer.get("addresses") or [], answer.get("start", "")
            self._heed(answer)
        except BaseException:
            self._end()
            raise

    def _end(self, closed: bool = False, failed: bool = False) -> None:
        self._closed = self._closed or closed
        if self._ranks and closed:
            self._ranks.end(failed)
        self._finalizer()
        self._sidecar = None

    def _survive(self, act: Callable[[], T]) -> Optional[T]:
        """Does it, in another life if the sidecar dies; None if the trainer goes on alone."""
        self._mine()
        while not self._alone:
            try:
                if self._sidecar is None:
                    for t in self._tensors:
                        t.fill()
                    self._begin()
                return act()
            except RankLost:
                self._end(closed=True, failed=True)
                raise
            except Refused as err:
                if err.fatal:
                    self._end(closed=True)
                raise
            except Lost as err:
                self._failures += 1
                self._end(closed=self._on_lost == "raise" or self._failures > RESTARTS, failed=True)
                if self._closed:
                    raise
                self._alone = self._on_lost == "alone"
                warnings.warn(f"{'training goes on alone' if self._alone else 'another sidecar is started'}: {err}", stacklevel=4)
        return None

    def _commit(self) -> None:
        self._post()
        self._settle(at_once=True)

    def _post(self) -> None:
        """Begins a commit, whose answer _settle heeds; until then the memory is the bridge's."""
        self._settle()
        began = time.perf_counter()
        for t in self._tensors:
            t.fill()
        done = self._ranks.sum(self._since) if self._ranks else self._since
        request: Dict[str, Any] = {"op": "commit", "steps": done.steps, "samples": int(done.samples), "spent_us": int(self._spent * 1e6)}
        if done.told and math.isfinite(loss := float(done.losses) / done.told):
            request["loss"] = loss
        self._posted, self._since = self._since, Done()
        self._heard("sending a commit", lambda connection: connection.post(request))
        self._spent = time.perf_counter() - began

    def _settle(self, at_once: bool = False) -> None:
        """Ends a commit that was begun: takes what comes of it or, where the training went on, adds that."""
        if not (posted := self._posted):
            return
        began = time.perf_counter()
        try:
            self._answer = self._answer or self._heard("commit", lambda connection: connection.answer())
        except Refused:
            self._posted, self._since = None, self._since + posted
            raise
        self._heed(self._answer, TensorRange.take if at_once or not self._overlap else TensorRange.correct)
        self._answer = self._posted = None
        self._failures, self._spent = 0, self._spent + time.perf_counter() - began
        self._note()

    def _heed(self, answer: Answer, by: Callable[[TensorRange], None] = TensorRange.take) -> None:
        """Brings what is in the memory into the model, and what is said into the state."""
        for t in self._tensors:
            by(t)
        if resume := answer.get("resume"):
            self._resume = {"resume": resume}
        self.state = self.state.after(answer)

    def _ask(self, op: str, **fields: Any) -> Answer:
        self._settle()
        return self._heard(op, lambda connection: connection.ask({"op": op, **fields}))

    def _first(self, act: Callable[[], T]) -> T:
        """Has the first process of the peer do it; all have what it comes to."""
        return self._ranks.told(act) if self._ranks else act()

    def _heard(self, op: str, act: Callable[[Connection], Optional[Answer]]) -> Answer:
        """What the sidecar says by the connection, in all processes of the peer."""
        if not (life := self._sidecar):
            raise Lost("there is no sidecar")
        hear = functools.partial(life.hear, op, act)
        return (self._ranks.heard(op, hear, self._memory) if self._ranks else hear()) or {}
