"""A model's place in a flock: join, step, close."""

import math
import numbers
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
SAY_EVERY = 10.0  # seconds, while others are waited for

Addresses = Union[str, Sequence[str]]
T = TypeVar("T")


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

    def plus(self, other: "Done") -> "Done":
        return Done(self.steps + other.steps, self.samples + other.samples, self.losses + other.losses, self.told + other.told)


def join(model: Any, run: Optional[str] = None, peers: Addresses = (), listen: Addresses = (), *,
         members: int = 1, timeout: Optional[float] = 60.0, codec: Optional[str] = None, every: Optional[int] = None, on_lost: str = "restart", buffers: str = "local", overlap: bool = False,
         binary: "Optional[Union[str, os.PathLike[str]]]" = None, log: sidecar.Log = None, **settings: Any) -> "Flock":
    """Joins the flock that trains `run`, or begins one if there are no peers, and gives the model
    the flock's values if it has trained.

    model     a torch module, or a dict of float32 arrays (then work on flock.arrays)
    peers     addresses of members: their flock.address, or HOST:PORT
    listen    HOST:PORT to be reached at (default: all interfaces, any port)
    members   how many have to be there before this returns, this one included: else a fast first one may
              be done before the second has come. Meanwhile the log tells what others join
    timeout   the longest wait for them, in seconds; None: as long as it takes
    codec     what exchanges are coded by, e.g. "bf16"
    every     local steps between commits (default: as many as keep commits below a twentieth
              of the time)
    on_lost   when the sidecar dies: "restart" it and go on from the model as it is, "raise" Lost, or
              go on "alone"
    buffers   floating-point buffers such as batch-norm's statistics stay "local", or are "shared"
    overlap   the training goes on while steps are handed over, and what the flock has changed is added
              when it comes: for models on a GPU. It takes copies of the model, there and here
    binary    the program gossipnode (default: GOSSIPNODE, this Python's scripts, the PATH)
    log       where the sidecar's messages go, a path or file (default: the logger "gossipnode" of logging)
    settings  flags of `gossipnode bridge --help` with _ for -, such as steps=1000 or run_key="FILE"

    Raises Refused, Lost if the sidecar could not be started, TimeoutError if fewer members came, or
    FileNotFoundError without a program."""
    for name, given, kind, wanted in (("run", run, str, "text"), ("codec", codec, str, "text"), ("members", members, numbers.Integral, "a whole number"),
                                      ("every", every, numbers.Integral, "a whole number"), ("timeout", timeout, numbers.Real, "seconds"),
                                      ("binary", binary, (str, os.PathLike), "a path")):
        if given is not None and not isinstance(given, kind):
            raise TypeError(f"{name}={given!r}: want {wanted}")
    if on_lost not in ("restart", "raise", "alone") or buffers not in ("local", "shared"):
        raise ValueError(f"on_lost={on_lost!r}, buffers={buffers!r}: want restart, raise or alone; local or shared")
    if every is not None and not 1 <= every <= MOST_STEPS:
        raise ValueError(f"every={every}: want 1 to {MOST_STEPS} steps")
    settings["codec"] = codec
    hello: Dict[str, Any] = {"op": "hello", "v": VERSION, "join": _list("peers", peers), "listen": _list("listen", listen), **({"run": run} if run else {})}
    hello["settings"] = {name.replace("_", "-"): _value(name, value) for name, value in settings.items() if value is not None}
    if frozen := frozen_of(model):
        hello["frozen"] = frozen
    flock = Flock(ranges_of(model, buffers, staged=overlap), hello, sidecar.find(binary), every, on_lost, overlap, log)
    try:
        if members > 1:
            flock.wait(members, timeout)
    except BaseException:
        flock._end(closed=True)
        raise
    return flock


def _list(name: str, addresses: Addresses) -> List[str]:
    if isinstance(addresses, str):
        return [addresses]
    if isinstance(addresses, Sequence) and all(isinstance(a, str) for a in addresses):
        return list(addresses)
    raise TypeError(f"{name}={addresses!r}: want an address, or a list of them, each a string")


def _value(name: str, value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.path.abspath(os.fspath(value))
    if isinstance(value, (list, tuple)):
        return [str(v) for v in value]
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, numbers.Real):  # numpy's
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    raise TypeError(f"{name}={value!r}: a {type(value).__name__}, want a string, number, path, True or False, or a list of strings")


def _number(name: str, value: Any) -> Any:
    """A number, or a tensor of one value, which is not looked at."""
    if isinstance(value, numbers.Real):
        return value
    shape = getattr(value, "shape", ())
    if hasattr(value, "__float__") and math.prod(shape) == 1:
        return value.detach() if hasattr(value, "detach") else value
    raise TypeError(f"{name} is a {type(value).__name__}{list(shape) if shape else ''}: want a number, or a tensor of one")


class Flock:
    """What join returns; a context manager, which closes it. For one thread, that of the trainer,
    and the process that made it: in a forked child it only raises."""

    _all: "weakref.WeakSet[Flock]" = weakref.WeakSet()

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
        self._held = {id(r._tensor) for r in ranges if isinstance(r, TensorRange)}
        if any(self._held & other._held and not other._closed for other in Flock._all):
            raise Refused("layout", "the model is in a flock already", "close that one first, or join with a copy: copy.deepcopy(model)")
        self._memory, offset = sidecar.Memory(sum(r.count for r in ranges)), 0
        for r in ranges:
            r.place(self._memory, offset)
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
        return {r.entry["name"]: r.array for r in self._ranges if isinstance(r, ArrayRange)}

    def step(self, samples: int = 0, loss: Any = None) -> State:
        """Counts a step that the optimizer has made, of so many samples, and hands the steps to the
        flock when it is time. loss may be a tensor: it is looked at in a commit only."""
        self._mine()
        samples, loss = _number("samples", samples), None if loss is None else _number("loss", loss)
        done = self._since
        done.steps += 1
        done.samples += samples
        if loss is not None:
            done.losses += loss
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

    def wait(self, members: int, timeout: Optional[float] = None) -> State:
        """Waits until so many are in the flock, this one included, before the training begins; TimeoutError
        if they have not come within so many seconds."""
        began = said = time.monotonic()
        while self.commit().members < members and not (self.state.over or self._alone):
            now, here = time.monotonic(), f"{self.state.members} of {members} members are here"
            if timeout is not None and now - began >= timeout:
                raise TimeoutError(f"{here} after {timeout:g} seconds: start the others, check peers=, or wait longer by timeout=")
            if said == began or now - said >= SAY_EVERY:
                sidecar.logger.warning("waiting: %s; others join %s", here, self.address)
                said = now
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
        if not self.state.joined:
            warnings.warn("nobody else was ever met: this model was trained on the data here alone; members=2 in join waits for another", stacklevel=2)
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
