#!/usr/bin/env python3
"""Holds layers of tensor/nn, and the zoo's models, against torch's: outputs, loss and gradients, both ways.

    MURMURATION_TORCH=/tmp/torch/bin/python go test ./tensor/nn -run Torch
    MURMURATION_TORCH=/tmp/torch/bin/python go test ./examples/zoo/nets -run Torch -v    (torchvision, too)

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

import twins

TOLERANCE = 1e-4  # of the largest value


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


def apart(ours, theirs, least=1e-3):
    """How far two tensors are apart, in parts of the largest value, which is taken for least if it is less."""
    return (ours.reshape(theirs.shape) - theirs).abs().max().item() / max(theirs.abs().max().item(), least)


def check(folder):
    """What differs, by how much."""
    case = json.loads((folder / "case.json").read_text())
    torch.manual_seed(1)
    net = eval(case["torch"], vars(twins))  # the test's own text
    data = read(folder / "data.safetensors")
    net.load_state_dict(read(folder / "weights.safetensors"), strict=True)
    x = channels_first(data["x"])
    off = {"outputs": apart(data["out"], channels_last(net.eval()(x)))}
    before = {name: b.clone() for name, b in net.named_buffers()}
    out = channels_last(net.train()(x))
    loss = nn.functional.mse_loss(out, data["y"].reshape(out.shape))
    off["loss"] = apart(data["loss"], loss.detach().reshape(1))
    loss.backward()
    # That of a bias before a BatchNorm is 0 but for rounding: so it is held against the largest of all.
    largest = max(p.grad.abs().max().item() for p in net.parameters())
    for name, p in net.named_parameters():
        off["gradient of " + name] = apart(data["grad." + name], p.grad, 0.1 * largest)
    for name, b in net.named_buffers():
        off["change of " + name] = apart(data["grad." + name], (b - before[name]).float())
    # And back: other weights, which torch writes.
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.1 * p.std() * torch.randn_like(p) if p.numel() > 1 else 0.1)
    net.eval()
    write(folder / "back.safetensors", net.state_dict())
    write(folder / "backout.safetensors", {"out": channels_last(net(x))})
    return off


def main():
    torch.set_num_threads(1)
    failed = False
    for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        off = check(folder)
        for what, by in off.items():
            if not by <= TOLERANCE:
                failed = True
                print(f"{folder.name}: {what}: {by:.2e} of the largest value apart")
        gradients = max(by for what, by in off.items() if what.startswith("gradient"))
        print(f"{folder.name}: outputs {off['outputs']:.1e}, loss {off['loss']:.1e}, gradients at most {gradients:.1e} apart")
    sys.exit(failed)


if __name__ == "__main__":
    main()
