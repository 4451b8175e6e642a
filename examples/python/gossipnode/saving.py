"""What flock.save(path, optimizer) writes, and join(resume=path) goes on from exactly. It holds no key."""

import json
import os
import tempfile
from typing import Any, Callable, Dict, List, Mapping

from .layout import Range, torch_of

FORMAT = "gossipnode training 1"
SAID = ("peer", "incarnation", "age", "flock_steps", "own")  # of a resume: neither the key nor addresses


def standing(resume: Mapping[str, Any]) -> Dict[str, Any]:
    """What of a bridge's resume may be in a file that others see."""
    return {name: resume[name] for name in SAID if name in resume}


def write(path: str, save: Callable[[str], None], module: Any, ranges: List[Range], optimizer: Any, scheduler: Any, said: Dict[str, Any]) -> None:
    """Writes the file in one step; save writes the flock's model to a path, which is all without an optimizer and a scheduler."""
    if optimizer is None and scheduler is None:
        return save(path)
    if not (torch := torch_of(module)):
        raise ValueError("save: an optimizer is saved with a torch module only")
    taken, kept = {r.name for r in ranges}, module.state_dict()
    content: Dict[str, Any] = {"format": FORMAT, "flock": said}
    content["rest"] = {name: kept[name].detach() for name, _ in module.named_buffers() if name in kept and name not in taken}  # such as counts in integers
    for name, of in (("optimizer", optimizer), ("scheduler", scheduler)):
        content[name] = None if of is None else of.state_dict()
    with tempfile.TemporaryDirectory(prefix=f"{os.path.basename(path)}.", dir=os.path.dirname(path)) as folder:
        model, whole = os.path.join(folder, "model"), os.path.join(folder, "whole")
        save(model)
        content["model"] = _tensors(torch, model)
        with open(whole, "wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(whole, path)


def _tensors(torch: Any, path: str) -> Dict[str, Any]:
    """The tensors of a file in safetensors that a bridge has written, all float32."""
    with open(path, "rb") as file:
        entries = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        values = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    return {name: values[slice(*e["data_offsets"])].view(torch.float32).reshape(e["shape"]).clone() for name, e in entries.items() if name != "__metadata__"}


def read(torch: Any, resume: Any) -> Mapping[str, Any]:
    """What join goes on from: what is in a file or, under "flock", a standing."""
    if resume is None or isinstance(resume, Mapping):
        return {"flock": standing(resume)} if resume else {}
    if torch is None:
        raise ValueError("resume: a file is for a torch module; keep flock.standing beside arrays")
    content: Any = torch.load(resume, map_location="cpu", weights_only=True)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{resume} is no file of flock.save(path, optimizer) of this release: give one with the format {FORMAT!r}")
    return content


def check(saved: Mapping[str, Any], optimizer: Any, scheduler: Any) -> None:
    """ValueError rather than leave out a state that was saved, or make one up. A first start, without resume, has none."""
    for name, of, given in (("optimizer", "an optimizer", optimizer), ("scheduler", "a scheduler", scheduler)):
        if given is not None and saved and "model" not in saved:
            raise ValueError(f"{name}=: its state is in a file of flock.save(path, optimizer), and resume= is none: leave it out, and load a state of your own by load_state_dict")
        if saved and (given is None) != (saved.get(name) is None):
            which = "the" if given is None else "no"
            raise ValueError(f"resume: the file has {which} state of {of}: give join {which} {name}=")


def restore(saved: Mapping[str, Any], model: Any, optimizer: Any, scheduler: Any) -> None:
    """Gives back what is not in the flock: other buffers, and the state of an optimizer and a schedule; that of a
    parameter in bfloat16 in float32, as its master copy has had it, which load_state_dict rounds."""
    model.load_state_dict(saved["rest"], strict=False)
    if scheduler is not None:
        scheduler.load_state_dict(saved["scheduler"])
    if optimizer is None:
        return
    optimizer.load_state_dict(saved["optimizer"])
    for number, p in enumerate(p for group in optimizer.param_groups for p in group["params"]):
        for key, value in saved["optimizer"]["state"].get(number, {}).items():
            now = optimizer.state[p][key]
            if getattr(now, "dtype", None) != getattr(value, "dtype", None):
                optimizer.state[p][key] = value.to(now.device, copy=True)
