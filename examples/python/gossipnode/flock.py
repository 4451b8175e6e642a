"""A model's place in a flock: join, step, close."""

import math
import os
import time
import warnings
import weakref
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Optional, Sequence, TypeVar, Union

from . import sidecar
from .layout import ArrayRange, Range, TensorRange, frozen_of, ranges_of
from .optimizer import Attached
from .protocol import VERSION, Answer, Connection, Lost, Refused

RESTARTS = 3  # lives that may fail one after the other, without a commit between
MOST_STEPS = 1 << 16  # of one commit

Addresses = Union[str, Sequence[str]]
T = TypeVar("T")


@dataclass(frozen=True)
class State:
    """How the run was at the last commit."""

    over: bool = False  # the flock has done its work: stop, and close
    progress: float = 0.0  # of the flock, 0 to 1; let learning-rate schedules follow it
    members: int = 1
    quantum: int = 1  # steps until the next commit
    steps: int = 0  # of this peer
    flock_steps: int = 0
    merged: bool = False  # the model is the one of all, the same for everybody
    waited: float = 0.0  # seconds that the last commit took

    def after(self, answer: Answer) -> "State":
        return replace(self, waited=answer.get("waited_us", 0) / 1e6, **{k: answer[k] for k in self.__dataclass_fields__ if k in answer})


@dataclass
class Done:
    """The steps since the last commit."""

    steps: int = 0
    samples: int = 0
    losses: Any = 0.0  # the sum of those that were told
    told: int = 0

    def plus(self, other: "Done") -> "Done":
        return Done(self.steps + other.steps, self.samples + other.samples, self.losses + other.losses, self.told + other.told)


def join(model: Any, run: Optional[str] = None, peers: Addresses = (), listen: Addresses = (), *,
         codec: Optional[str] = None, every: Optional[int] = None, on_lost: str = "restart", buffers: str = "local", overlap: bool = False,
         binary: "Optional[Union[str, os.PathLike[str]]]" = None, log: sidecar.Log = None, **settings: Any) -> "Flock":
    """Joins the flock that trains `run`, or begins one if there are no peers, and gives the model
    the flock's values if it has trained.

    model     a torch module, or a dict of float32 arrays (then work on flock.arrays)
    peers     addresses of members: their flock.address, or HOST:PORT
    listen    HOST:PORT to be reached at (default: all interfaces, any port)
    codec     what exchanges are coded by, e.g. "bf16"
    every     local steps between commits (default: as many as keep commits below a twentieth
              of the time)
    on_lost   when the sidecar dies: "restart" it and go on from the model as it is, "raise" Lost, or
              go on "alone"
    buffers   floating-point buffers such as batch-norm's statistics stay "local", or are "shared"
    overlap   the training goes on while steps are handed over, and what the flock has changed is added
              when it comes: for models on a GPU. It takes copies of the model, there and here
    binary    the program gossipnode (default: GOSSIPNODE, this Python's scripts, the PATH)
    log       where the sidecar's messages go, a path or file (default: standard error)
    settings  flags of `gossipnode bridge --help` with _ for -, such as steps=1000 or run_key="FILE"

    Raises Refused, Lost if the sidecar could not be started, or FileNotFoundError without a program."""
    if on_lost not in ("restart", "raise", "alone") or buffers not in ("local", "shared"):
        raise ValueError(f"on_lost={on_lost!r}, buffers={buffers!r}: want restart, raise or alone; local or shared")
    if every is not None and not 1 <= every <= MOST_STEPS:
        raise ValueError(f"every={every}: want 1 to {MOST_STEPS} steps")
    settings["codec"] = codec
    hello: Dict[str, Any] = {"op": "hello", "v": VERSION, "join": _list(peers), "listen": _list(listen), **({"run": run} if run else {})}
    hello["settings"] = {name.replace("_", "-"): _value(value) for name, value in settings.items() if value is not None}
    if frozen := frozen_of(model):
        hello["frozen"] = frozen
    return Flock(ranges_of(model, buffers, staged=overlap), hello, sidecar.find(binary), every, on_lost, overlap, log)


def _list(addresses: Addresses) -> List[str]:
    return [addresses] if isinstance(addresses, str) else list(addresses)


def _value(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.path.abspath(os.fspath(value))
    return [str(v) for v in value] if isinstance(value, (list, tuple)) else value


class Flock:
    """What join returns; a context manager, which closes it. For one thread, that of the trainer,
    and the process that made it: in a forked child it only raises."""

    def __init__(self, ranges: List[Range], hello: Dict[str, Any], binary: str, every: Optional[int], on_lost: str,
                 overlap: bool, log: sidecar.Log):
        self._ranges, self._hello, self._binary = ranges, hello, binary
        self._every, self._on_lost, self._overlap, self._log = every, on_lost, overlap, log
        self._owner, self._failures, self._spent = os.getpid(), 0, 0.0
        self._sidecar: Optional[sidecar.Sidecar] = None
        self._closed = self._alone = False
        self._since = Done()
        self._posted: Optional[Done] = None  # of a commit that has not been answered yet
        self._behind = False  # the memory may have a model that staged tensors have not
        self._resume: Dict[str, Any] = {}  # for the next sidecar, should this one die
        self.state = State()
        self.addresses: List[str] = []
        self.start = ""  # how it came to its model: founder, joined, copied or resumed
        hello["layout"] = [r.entry for r in ranges]
        self._memory, offset = sidecar.Memory(sum(r.count for r in ranges)), 0
        for r in ranges:
            r.place(self._memory, offset)
            offset += 4 * r.count
        self._begin()

    @property
    def address(self) -> str:
        """What others give as peers: the first that is not of this machine alone, if one is."""
        return next((a for a in self.addresses if "/127." not in a and "/::1/" not in a), (self.addresses or [""])[0])

    @property
    def arrays(self) -> Dict[str, Any]:
        """The values of a model that was a dict of arrays, by name: views, to train in place."""
        return {r.entry["name"]: r.array for r in self._ranges if isinstance(r, ArrayRange)}

    def step(self, samples: int = 0, loss: Any = None) -> State:
        """Counts a step that the optimizer has made, of so many samples, and hands the steps to the
        flock when it is time. loss may be a tensor: it is looked at in a commit only."""
        self._mine()
        done = self._since
        done.steps += 1
        done.samples += samples
        if loss is not None:
            done.losses += loss.detach() if hasattr(loss, "detach") else loss
            done.told += 1
        if done.steps >= (self._every or min(self.state.quantum, MOST_STEPS)):
            self._survive(self._post if self._overlap else self._commit)
        elif self._posted and self._sidecar and self._sidecar.connection.has_answer():
            self._survive(self._settle)
        return self.state

    def attach(self, optimizer: Any, samples: int = 0) -> Attached:
        """Has a torch optimizer call step after each of its own, until .remove() of what this
        returns: look at flock.state.over in the loop. Parameters in bfloat16 or float16 have
        master copies then, so that steps too small for these types are not lost."""
        masters = [r.master() for r in self._ranges if isinstance(r, TensorRange) and r.is_low]
        return Attached(optimizer, masters, lambda: self._closed or self.step(samples))

    def commit(self) -> State:
        """Hands over now what has been trained, and fetches the flock's model."""
        self._survive(self._commit)
        return self.state

    def wait(self, members: int) -> State:
        """Waits until so many are in the flock, this one included, before the training begins."""
        while self.commit().members < members and not (self.state.over or self._alone):
            time.sleep(0.1)
        return self.state

    def save(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Writes the model as it is in the flock to a file: a state_dict in safetensors, float32."""
        self.commit()
        if not self._survive(lambda: self._ask("save", path=os.path.abspath(os.fspath(path)))):
            raise Lost("nothing is saved: the sidecar has died, and this model trains alone; save it by torch.save")

    def stats(self) -> Dict[str, Any]:
        """What the peer knows of itself: steps, members, exchanges, bytes and others."""
        return (self._survive(lambda: self._ask("stats")) or {}).get("stats", {})

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
                self.state = self._traded("leave")
        except Lost as err:
            if self._on_lost == "raise":
                raise
            warnings.warn(f"the flock was left without the last {self._since.steps} steps: {err}", stacklevel=2)
        finally:
            self._end(closed=True)
        if merge and not self.state.merged:
            warnings.warn('the model is not merged: all members have to join with final="merge", and to be there in the end', stacklevel=2)
        return self.state

    def __enter__(self) -> "Flock":
        return self

    def __exit__(self, failed: Any, *_: Any) -> None:
        if failed is None:
            self.close()
        else:
            self._end(closed=True)  # what was half done is not committed; the peer leaves in good order

    def _mine(self) -> None:
        if os.getpid() != self._owner:
            raise RuntimeError(f"this flock is of process {self._owner}: use it there, or join in this one")
        if self._closed:
            raise Refused("closed", "the flock is closed", "join again")

    def _begin(self) -> None:
        """Begins a life in the flock with the model as it is."""
        self._posted = None
        self._filled()
        self._since, self._spent = Done(), 0.0  # the steps are in the values to begin with
        self._sidecar = started = sidecar.Sidecar(self._binary, self._memory, self._log)
        self._finalizer = weakref.finalize(self, started.end)
        try:
            # Another life listens where others know the peer to be, if it can.
            known = {"listen": [a.rpartition("/p2p/")[0] for a in self.addresses if "/p2p-circuit" not in a]} if self.addresses else {}
            try:
                answer = self._ask(**{**self._hello, **known, **self._resume})
            except Refused as err:
                if not known or err.fatal:
                    raise
                answer = self._ask(**self._hello, **self._resume)
            self.addresses, self.start = answer.get("addresses") or [], answer.get("start", "")
            self.state = self._took(answer)
        except BaseException:
            self._end()
            raise

    def _end(self, closed: bool = False) -> None:
        self._closed = self._closed or closed
        if self._sidecar:
            self._finalizer.detach()
            self._sidecar.end()
            self._sidecar = None

    def _survive(self, act: Callable[[], T]) -> Optional[T]:
        """Does it, in another life if the sidecar dies; None if the trainer goes on alone."""
        self._mine()
        while not self._alone:
            try:
                if self._sidecar is None:
                    self._begin()
                return act()
            except Lost as err:
                self._failures += 1
                self._end(closed=self._on_lost == "raise" or self._failures > RESTARTS)
                if self._closed:
                    raise
                self._alone = self._on_lost == "alone"
                warnings.warn(f"{'training goes on alone' if self._alone else 'another sidecar is started'}: {err}", stacklevel=4)
        return None

    def _commit(self) -> None:
        self._settle()
        began = time.perf_counter()
        done = self._filled()
        self._since = Done()  # what a signal cuts short may have been counted
        try:
            self.state = self._traded("commit", **self._told(done))
        except Refused:
            self._since = done
            raise
        self._failures, self._spent = 0, time.perf_counter() - began

    def _told(self, done: Done) -> Dict[str, Any]:
        fields: Dict[str, Any] = {"steps": done.steps, "samples": int(done.samples)}
        if done.told and math.isfinite(loss := float(done.losses) / done.told):
            fields["loss"] = loss
        if self._spent:
            fields["spent_us"] = int(self._spent * 1e6)
        return fields

    def _post(self) -> None:
        """Begins a commit, whose answer _settle heeds; until then the memory is the bridge's."""
        self._settle()
        began = time.perf_counter()
        self._catch_up()
        for r in self._ranges:
            r.send()
        request = {"op": "commit", **self._told(self._since)}
        self._posted, self._since = self._since, Done()
        self._answered(lambda connection: connection.post(request))
        self._spent = time.perf_counter() - began

    def _settle(self) -> None:
        """Ends a commit that was begun, by adding what it has changed."""
        if not self._posted:
            return
        began, posted = time.perf_counter(), self._posted
        try:
            answer = self._answered(lambda connection: connection.answer("commit"))
        except Refused:
            self._posted, self._since = None, self._since.plus(posted)
            raise
        self._posted = None
        for r in self._ranges:
            r.correct()
        self.state = self._noted(answer)
        self._failures, self._spent = 0, self._spent + time.perf_counter() - began

    def _filled(self) -> Done:
        """Brings what has been trained into the memory."""
        self._catch_up()
        for r in self._ranges:
            r.fill()
        return self._since

    def _catch_up(self) -> None:
        """Takes over what the memory has, if a signal has cut the last commit short."""
        for r in self._ranges:
            r.check()
        if self._behind and self._sidecar:
            self._sidecar.connection.settle()
            self._took({})

    def _traded(self, op: str, **fields: Any) -> State:
        """Has the bridge take the memory's values and put its own there; a refusal leaves them."""
        self._behind = True
        try:
            return self._took(self._ask(op, **fields))
        except Refused:
            self._behind = False
            raise

    def _took(self, answer: Answer) -> State:
        for r in self._ranges:
            r.take()
        self._behind = False
        return self._noted(answer)

    def _noted(self, answer: Answer) -> State:
        if resume := answer.get("resume"):
            self._resume = {"resume": resume}
        return self.state.after(answer)

    def _ask(self, op: str, **fields: Any) -> Answer:
        self._settle()
        return self._answered(lambda connection: connection.ask({"op": op, **fields}))

    def _answered(self, by: Callable[[Connection], T]) -> T:
        if self._sidecar is None:
            raise Lost("there is no sidecar")
        try:
            return by(self._sidecar.connection)
        except Lost as err:
            raise self._sidecar.lost(err) from err
        except Refused as err:
            if err.fatal:
                self._end(closed=True)
            raise
