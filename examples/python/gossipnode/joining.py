"""join, and what its arguments may be."""

import contextlib
import numbers
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from . import saving, sidecar
from .flock import MOST_STEPS, Flock
from .layout import bare, frozen_of, ranges_of, torch_of
from .protocol import VERSION
from .ranks import ranks_of

Addresses = Union[str, Sequence[str]]


def join(model: Any, run: Optional[str] = None, peers: Addresses = (), listen: Addresses = (), *,
         members: int = 1, timeout: Optional[float] = 60.0, codec: Optional[str] = None, every: Optional[int] = None, on_lost: str = "restart", buffers: str = "local", overlap: bool = False,
         ranks: Any = None, resume: Union[None, sidecar.Path, Mapping[str, Any]] = None, optimizer: Any = None, scheduler: Any = None,
         binary: Optional[sidecar.Path] = None, log: sidecar.Log = None, **settings: Any) -> Flock:
    """Joins the flock that trains `run`, or begins one if there are no peers, and gives the model
    the flock's values if it has trained.

    model     a torch module, or a dict of float32 arrays (then work on flock.arrays)
    peers     addresses of members: their flock.address, or HOST:PORT
    listen    HOST:PORT to be reached at (default: all interfaces, any port)
    members   how many have to be there before this returns, this one included: else a fast first one may
              be done before the second has come. Meanwhile the log tells what others join
    timeout   the longest wait for them, in seconds; None: as long as it takes
    codec     what exchanges are coded by, e.g. "bf16"
    every     local steps between commits (default: as many as keep commits below a twentieth of the time)
    on_lost   when the sidecar dies: "restart" it and go on from the model as it is, "raise" Lost, or go on "alone"
    buffers   floating-point buffers such as batch-norm's statistics stay "local", or are "shared"
    overlap   the training goes on while steps are handed over, and what the flock has changed is added
              when it comes: for models on a GPU. It takes copies of the model, there and here
    ranks     the processes that are this one peer, all of which join alike: True for all of torch.distributed, or a
              process group. The first of them takes part in the flock (default: those of a DistributedDataParallel)
    resume    goes on from a file of flock.save(path, optimizer), or from the flock.standing of a checkpoint of your own.
              With the same key="FILE" it is the same peer; without, a new one, whose steps count from 0 if it joins others
    optimizer, scheduler   get their state from the file of resume, refused if that has none; without resume they stay as they are
    binary    the program gossipnode (default: GOSSIPNODE, this Python's scripts, the PATH)
    log       where the sidecar's messages go, a path or file (default: the logger "gossipnode" of logging)
    settings  flags of `gossipnode bridge --help` with _ for -, such as steps=1000 or run_key="FILE"

    Raises Refused, Lost if the sidecar could not be started, RankLost if another of its processes has died,
    TimeoutError if fewer members came, or FileNotFoundError without a program."""
    for name, given, kind, wanted in (("run", run, str, "text"), ("codec", codec, str, "text"), ("members", members, numbers.Integral, "a whole number"),
                                      ("every", every, numbers.Integral, "a whole number"), ("timeout", timeout, numbers.Real, "seconds"),
                                      ("binary", binary, (str, os.PathLike), "a path")):
        if given is not None and not isinstance(given, kind):
            raise TypeError(f"{name}={given!r}: want {wanted}")
    if on_lost not in ("restart", "raise", "alone") or buffers not in ("local", "shared"):
        raise ValueError(f"on_lost={on_lost!r}, buffers={buffers!r}: want restart, raise or alone; local or shared")
    if every is not None and not 1 <= every <= MOST_STEPS:
        raise ValueError(f"every={every}: want 1 to {MOST_STEPS} steps")
    hello: Dict[str, Any] = {
        "op": "hello", "v": VERSION, "run": run or "", "join": _list("peers", peers), "listen": _list("listen", listen),
        "settings": {name.replace("_", "-"): _value(name, value) for name, value in {"codec": codec, **settings}.items() if value is not None}}
    torch = torch_of(model)
    together = ranks_of(torch, model, ranks)
    with contextlib.ExitStack() as failed:
        if together:
            failed.callback(together.end, failed=True)
        if torch:
            model = bare(torch, model)
            hello["frozen"] = frozen_of(torch, model)
        ranges = ranges_of(model, buffers, staged=overlap)
        hello["layout"] = [r.entry for r in ranges]
        saved = together.told(lambda: saving.read(torch, resume)) if together else saving.read(torch, resume)
        saving.check(saved, optimizer, scheduler)
        flock = Flock(ranges, hello, binary, every, on_lost, overlap, log, model if torch else None, together, saved)
        failed.callback(flock._end, closed=True, failed=True)
        if "model" in saved:
            saving.restore(saved, model, optimizer, scheduler)
        if members > 1:
            flock.wait(members, timeout)
        failed.pop_all()
    return flock


def _list(name: str, addresses: Addresses) -> List[str]:
    given = [addresses] if isinstance(addresses, str) else addresses
    if not isinstance(given, Sequence) or not all(isinstance(a, str) for a in given):
        raise TypeError(f"{name}={addresses!r}: want an address, or a list of them, each a string")
    return list(given)


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
