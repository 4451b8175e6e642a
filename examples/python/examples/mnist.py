"""MNIST with others: `python mnist.py --data FOLDER` prints an address, and elsewhere
`python mnist.py --data FOLDER --part 1/2 --peers ADDRESS` trains along."""

import argparse
import gzip

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import gossipnode


def idx(path):
    with gzip.open(path) as file:
        raw = bytearray(file.read())
    shape = [int.from_bytes(raw[i:i + 4], "big") for i in range(4, 4 + 4 * raw[3], 4)]
    return torch.frombuffer(raw, dtype=torch.uint8, offset=4 + 4 * raw[3]).view(shape)


def digits(folder, split):
    """Pictures, scaled as gossipnode run does it, and their labels."""
    return idx(f"{folder}/{split}-images-idx3-ubyte.gz").flatten(1) / (255 * 0.33467), idx(f"{folder}/{split}-labels-idx1-ubyte.gz").long()


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder of the four files of MNIST")
    parser.add_argument("--part", default="0/1", help="I/N from 0, the share of the pictures to train on")
    parser.add_argument("--steps", type=int, default=2000, help="of each peer")
    parser.add_argument("--peers", nargs="*", default=[])
    parser.add_argument("--listen", default="0.0.0.0:0")
    parser.add_argument("--min-peers", type=int, default=1, help="begin when so many are here")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    x, y = (whole[part::parts] for whole in digits(options.data, "train"))
    torch.manual_seed(1)  # all begin with the same values
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with gossipnode.join(model, run="digits", peers=options.peers, listen=options.listen, steps=options.steps, final="merge") as flock:
        print("others join", flock.address, flush=True)
        flock.wait(options.min_peers)
        while not flock.state.over:
            batch = torch.randint(len(x), (32,))
            loss = cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            flock.step(samples=32, loss=loss)
    print(f"accuracy {accuracy(model, *digits(options.data, 't10k')):.4f} of {flock.state.members} members after {flock.state.steps} steps")


if __name__ == "__main__":
    main()
