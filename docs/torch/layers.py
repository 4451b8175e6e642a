#!/usr/bin/env python3
"""Holds layers of tensor/nn against torch's: outputs, loss and gradients, both ways.

    MURMURATION_TORCH=/tmp/torch/bin/python go test ./tensor/nn -run Torch

The test writes a folder for each case: case.json with the model as torch has it, its
weights, a batch, and what tensor/nn makes of it. This script loads the weights with
strict=True and compares; then it writes weights of its own and what torch makes of
them, for the test to compare.
"""

import json
import pathlib
import struct
import sys

import torch
from torch import nn

from twins import CausalSelfAttention, Concat, Positions, Residual, Tokens, gpt

TOLERANCE = 1e-4  # of the largest value
NAMES = {"nn": nn, "CausalSelfAttention": CausalSelfAttention, "Concat": Concat, "Positions": Positions,
         "Residual": Residual, "Tokens": Tokens, "gpt": gpt}


def read(path):
    """The tensors of a safetensors file."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    body = bytearray(data[8 + size:])
    return {name: torch.frombuffer(body, dtype=torch.float32, offset=t["data_offsets"][0],
                                   count=(t["data_offsets"][1] - t["data_offsets"][0]) // 4).reshape(t["shape"])
            for name, t in header.items()}


def write(path, tensors):
    header, at = {}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [at, at + 4 * t.numel()]}
        at += 4 * t.numel()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            file.write(t.detach().float().contiguous().numpy().tobytes())


def channels_first(x):
    return x.permute(0, 3, 1, 2) if x.dim() == 4 else x


def channels_last(x):
    return x.permute(0, 2, 3, 1) if x.dim() == 4 else x


def apart(what, ours, theirs):
    """What is said of two tensors that differ, nothing if they do not."""
    most = max(theirs.abs().max().item(), 1e-3)
    off = (ours.reshape(theirs.shape) - theirs).abs().max().item() / most
    return [f"{what}: {off:.2e} of the largest value apart"] if not off <= TOLERANCE else []


def check(folder):
    case = json.loads((folder / "case.json").read_text())
    torch.manual_seed(1)
    net = eval(case["torch"], NAMES)  # the test's own text
    data = read(folder / "data.safetensors")
    net.load_state_dict(read(folder / "weights.safetensors"), strict=True)
    net.train(case["train"])
    out = net(channels_first(data["x"]))
    faults = apart("outputs", data["out"], channels_last(out))
    loss = nn.functional.mse_loss(channels_last(out), data["y"].reshape(channels_last(out).shape))
    faults += apart("loss", data["loss"], loss.detach().reshape(1))
    loss.backward()
    for name, p in net.named_parameters():
        faults += apart("gradient of " + name, data["grad." + name], p.grad)
    # And back: other weights, which torch writes.
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.1 * torch.randn_like(p))
    net.eval()
    write(folder / "back.safetensors", net.state_dict())
    write(folder / "backout.safetensors", {"out": channels_last(net(channels_first(data["x"])))})
    return faults


def main():
    torch.set_num_threads(1)
    failed = False
    for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        for fault in check(folder):
            failed = True
            print(f"{folder.name}: {fault}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
