"""A small transformer on the bytes of text files, with others: `python text.py FILE…`, and elsewhere
`python text.py OTHER-FILE… --peers ADDRESS`."""

import argparse
import pathlib

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import gossipnode

CONTEXT = 64


class Transformer(nn.Module):
    def __init__(self, width=64, heads=4, layers=2):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 4 * width, 0, "gelu", batch_first=True, norm_first=True)
                                    for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)
        self.head.weight = self.bytes.weight  # tied: shared once
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, text):
        x, mask = self.bytes(text) + self.places.weight[:text.shape[1]], nn.Transformer.generate_square_subsequent_mask(text.shape[1])
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return self.head(self.norm(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--peers", nargs="*", default=[])
    options = parser.parse_args()
    torch.manual_seed(1)  # all begin with the same values
    text = torch.frombuffer(bytearray(b"".join(f.read_bytes() for f in options.files)), dtype=torch.uint8).long()
    model = Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with gossipnode.join(model, run="text", peers=options.peers, steps=options.steps) as flock:
        print("others join", flock.address, flush=True)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1 - 0.9 * flock.state.progress)  # the flock's
        flock.attach(optimizer, samples=16)
        while not flock.state.over:
            starts = torch.randint(len(text) - CONTEXT, (16, 1))
            window = text[starts + torch.arange(CONTEXT + 1)]
            loss = cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    print(f"loss {loss.item():.3f} nats a byte after {flock.state.steps} steps")


if __name__ == "__main__":
    main()
