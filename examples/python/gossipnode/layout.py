"""What of a model is shared: its ranges under the names of its state_dict, in that order."""

import hashlib
import math
import sys
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from .protocol import Refused
from .sidecar import Memory

TYPES = {"torch.float32": "f32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}
MOVED = "close the flock before model.to(), half() or a new tensor in place of a parameter, and join again after it"


class Range:
    """A named range of the shared memory. place gives it its values, from a saved model if there is one."""

    def __init__(self, name: str, shape: Tuple[int, ...], kind: str, sharing: str = "shared", dtype: str = "f32"):
        self.entry: Dict[str, Any] = {"name": name, "shape": list(shape), "kind": kind, "sharing": sharing, "dtype": dtype}
        self.name, self.count = name, math.prod(shape)

    def place(self, memory: Memory, offset: int, saved: Optional[Mapping[str, Any]]) -> None: ...


class TensorRange(Range):
    """A parameter or buffer of a module. One that is float32, contiguous and on the CPU is moved
    into the memory, so that nothing is ever copied; any other has a copy there (staged). Before a commit
    fill brings the memory up to date, and refuses what has been moved; after it take copies back or, where the
    training went on, correct adds what has changed, once: a signal may have it called again."""

    def __init__(self, torch: Any, held: Dict[str, Any], key: str, name: str, kind: str, sharing: str, is_buffer: bool, staged: bool):
        tensor = held[key]
        super().__init__(name, tuple(tensor.shape), kind, sharing, TYPES[str(tensor.dtype)])
        self._torch, self._held, self._key, self._tensor, self._dtype = torch, held, key, tensor, tensor.dtype
        self._by_name = is_buffer  # modules put new tensors in place of their buffers
        self.is_low = tensor.dtype != torch.float32 and not is_buffer
        self.staged = staged or is_buffer or not (tensor.dtype == torch.float32 and tensor.is_contiguous() and tensor.device.type == "cpu")
        self._apart, self._master, self._sent = staged, None, None

    def place(self, memory: Memory, offset: int, saved: Optional[Mapping[str, Any]]) -> None:
        self.view = self._torch.frombuffer(memory, dtype=self._torch.float32, count=self.count, offset=offset)
        self.view = self.view.view(self._tensor.shape)
        if offset == 0 and self._tensor.device.type == "cuda":
            _pin(self._torch, memory, self.view.data_ptr())
        value = self._tensor.detach() if saved is None else saved.get(self.name)
        if value is None or value.shape != self.view.shape:
            raise Refused("layout", f"the saved model has {'no' if value is None else 'another shape of'} {self.name}", "resume with the model that was saved")
        self.view.copy_(value)
        if not self.staged:
            self._tensor.data = self.view

    def _trained(self) -> Any:
        return (self._held[self._key] if self._master is None else self._master).detach()

    def fill(self) -> None:
        now = self._held.get(self._key)
        if not (now is not None and now.dtype == self._dtype and now.shape == self.view.shape
                and (self._by_name or now is self._tensor) and (self.staged or now.data_ptr() == self.view.data_ptr())):
            raise Refused("layout", f"{self.name} has been moved, converted or replaced since the model joined", MOVED)
        if self.staged:
            trained = self._trained()
            self._sent = trained.clone() if self._apart else None
            self.view.copy_(trained)

    def correct(self) -> None:
        if self._sent is None:
            return
        trained = self._trained()
        trained.copy_(trained.float() + (self.view.to(trained.device) - self._sent))
        self._sent = None
        if self._master is not None:
            self._tensor.detach().copy_(trained)

    def take(self) -> None:
        if self.staged:
            self._sent = None
            self._held[self._key].detach().copy_(self.view)
            if self._master is not None:
                self._master.detach().copy_(self.view)

    def master(self) -> Tuple[Any, Any]:
        """The tensor, and a float32 copy of it beside it, which an optimizer may work on."""
        if self._master is None:
            self._master = self._torch.nn.Parameter(self.view.to(self._tensor.device, copy=self._apart))  # else the view itself on the CPU
        return self._tensor, self._master


class ArrayRange(Range):
    """An array of float32, with numpy's or without: its values move into the memory, where .array
    is a view of them."""

    def __init__(self, name: str, values: Any):
        try:
            raw = memoryview(values)
        except TypeError as err:
            raise Refused("layout", f"{name} is a {type(values).__name__}", "give a torch module, or a dict of float32 arrays") from err
        if raw.format not in ("f", "<f"):
            raise Refused("layout", f"{name} has the format {raw.format!r}", "convert it to float32: values.astype(numpy.float32)")
        super().__init__(name, raw.shape or (), "bias" if name.split(".")[-1].startswith("bias") else "dense")
        self._values = raw.tobytes()

    def place(self, memory: Memory, offset: int, saved: Optional[Mapping[str, Any]]) -> None:
        view = memoryview(memory)[offset:offset + 4 * self.count]
        view[:], self._values = self._values, b""
        numpy = sys.modules.get("numpy")
        shape = self.entry["shape"]
        self.array = numpy.frombuffer(view, numpy.float32).reshape(shape) if numpy else view.cast("f", shape) if shape else view.cast("f")


def torch_of(model: Any) -> Any:
    """torch, if the model is a module of it."""
    torch = sys.modules.get("torch")
    return torch if torch and isinstance(model, torch.nn.Module) else None


def ranges_of(model: Any, buffers: str = "local", staged: bool = False) -> List[Range]:
    """The ranges of a torch module, or of a dict of float32 arrays; all of them copied if staged."""
    if torch := torch_of(model):
        ranges: List[Range] = list(_of_module(torch, model, buffers, staged))
    elif isinstance(model, Mapping):
        if staged:
            raise ValueError("overlap=True: of a torch module only; arrays are trained in the shared memory")
        ranges = [ArrayRange(name, values) for name, values in model.items()]
    else:
        raise Refused("layout", f"a model of type {type(model).__name__}", "give a torch module, or a dict of float32 arrays")
    if not any(r.entry["sharing"] == "shared" for r in ranges):
        raise Refused("layout", "no parameter of the model is trained", "let those to be shared require gradients: p.requires_grad_()")
    return ranges


def bare(torch: Any, model: Any) -> Any:
    """The module that torch.compile and DistributedDataParallel wrap, whose names others have too."""
    for _ in range(2):  # either may be within the other
        model = getattr(model, "_orig_mod", model)
        model = model.module if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model
    return model


def frozen_of(torch: Any, model: Any) -> str:
    """A digest of what is not trained, and so not shared, from some values of each; empty if all is."""
    frozen = [(name, p.detach()) for name, p in model.named_parameters()
              if not (p.requires_grad or p.is_meta or p.is_complex() or p.is_quantized or hasattr(p, "placements")) and p.layout == torch.strided]
    digest = hashlib.sha256()
    for name, p in frozen:
        some = p.flatten()[::max(1, p.numel() // 1024)].to("cpu", torch.float64).tolist()
        digest.update(f"{name} {tuple(p.shape)} {some}".encode())
    return digest.hexdigest()[:16] if frozen else ""


def _of_module(torch: Any, model: Any, buffers: str, staged: bool) -> Iterator[Range]:
    """In the order of the state_dict: a module's parameters, then its buffers. Left out are what is
    frozen, tied weights but once, buffers of integers or not to be saved, and what is empty."""
    seen, storages = set(), dict[Any, str]()
    for prefix, module in model.named_modules():
        for key, tensor in [*module._parameters.items(), *module._buffers.items()]:
            name = f"{prefix}.{key}" if prefix else key
            is_buffer = key in module._buffers
            if tensor is None or id(tensor) in seen or not (is_buffer or tensor.requires_grad):
                continue
            seen.add(id(tensor))
            if is_buffer and (key in module._non_persistent_buffers_set or not tensor.is_floating_point()):
                continue
            fault = _unfit(torch, tensor)
            if fault and not (is_buffer and buffers == "local"):
                raise Refused("layout", f"{name} {fault[0]}", fault[1])
            if fault or tensor.numel() == 0:
                continue
            if not is_buffer:
                first = storages.setdefault((tensor.device, tensor.data_ptr()), name)
                if first != name:
                    raise Refused("layout", f"{name} and {first} are two parameters in the same memory", "tie weights by one parameter: a.weight = b.weight")
            kind = "statistic" if is_buffer else _kind(torch, module, key)
            held = module._buffers if is_buffer else module._parameters
            yield TensorRange(torch, held, key, name, kind, buffers if is_buffer else "shared", is_buffer, staged)


def _pin(torch: Any, memory: Memory, address: int) -> None:
    """Has CUDA copy from and to the memory without a stop between, if it will."""
    cuda = torch.cuda.cudart()
    if int(cuda.cudaHostRegister(address, len(memory), 0)) == 0:
        memory.before_unmapped = lambda: cuda.cudaHostUnregister(address)


def _kind(torch: Any, module: Any, key: str) -> str:
    """What a parameter is, by the module that owns it: codecs treat kinds differently."""
    if "Norm" in type(module).__name__:
        return "norm"
    if "bias" in key:
        return "bias"
    if isinstance(module, torch.nn.modules.conv._ConvNd):
        return "conv"
    return "embedding" if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) else "dense"


def _unfit(torch: Any, tensor: Any) -> Tuple[str, ...]:
    """Why a tensor cannot be shared, and what to do; empty if it can."""
    if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin) or tensor.is_meta:
        return "has no values yet", "run one batch through the model, or load a checkpoint, before it joins"
    if hasattr(tensor, "placements") or "Flat" in type(tensor).__name__:
        return "is sharded over processes", "join with the whole model, before it is sharded; one process of each replica joins"
    if tensor.layout != torch.strided:
        return "is sparse", "train it dense (sparse=False), or freeze it by requires_grad_(False)"
    if tensor.is_quantized:
        return "is quantized", "share what is trained in float32, bfloat16 or float16, such as adapters over it"
    if tensor.is_complex():
        return "is complex", "keep it as real numbers: torch.view_as_real"
    if str(tensor.dtype) not in TYPES:
        return f"is {tensor.dtype}", "convert the model before it joins: model.float(), or bfloat16 or float16"
    return ()
