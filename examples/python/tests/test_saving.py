"""What is saved, and that a training goes on from it bit for bit: with torch, and the real bridge where GOSSIPNODE
names it. No file holds the peer's key."""

import base64
import json
import os
import subprocess
import tempfile
import unittest
import unittest.mock
import warnings

import gossipnode
from gossipnode import saving

try:
    import torch
    from torch import nn
except ImportError as absent:
    raise unittest.SkipTest(f"torch is not here: {absent}")

from .test_torch import FAKE, REAL, Case


def forms(seed):
    """A private key's 32 bytes in the forms in which a file could have them, base64 at any place in a longer text."""
    found = [seed, seed.hex().encode(), seed.hex().upper().encode(), repr(list(seed)).encode(), json.dumps(list(seed), indent=2).encode()]
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            found.append(encode(bytes(before) + seed)[(0, 2, 3)[before]:-4])
    return found


def holding(folder, seed):
    """The files below a folder that hold a key. torch.save does not compress."""
    found = []
    for at, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(at, name), "rb") as file:
                content = file.read()
            if any(form in content for form in forms(seed)):
                found.append(name)
    return found


def key_of(path):
    """The seed in a key's file, and a file with it."""
    subprocess.run([REAL, "keygen", "--out", path], check=True, capture_output=True)
    with open(path) as file:
        return base64.b64decode("".join(line for line in file.read().splitlines() if "-----" not in line))[-32:]


class Model(nn.Module):
    """With a buffer of integers, one of floats, and a part in bfloat16."""

    def __init__(self, low=False):
        super().__init__()
        self.norm, self.first, self.last = nn.BatchNorm1d(8, momentum=None), nn.Linear(8, 12), nn.Linear(12, 3)
        self.norm.running_mean.fill_(0.5)
        if low:
            self.last.bfloat16()

    def forward(self, x):
        return self.last(self.first(self.norm(x)).tanh().to(self.last.weight.dtype)).float()


OPTIMIZERS = {
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
}
# Files that a release has written, which none writes anew: COMPATIBILITY says which it promises to read.
KEPT = os.path.join(os.path.dirname(__file__), "..", "..", "..", "testdata", "v0.1.0")

SCHEDULES = {
    "none": lambda o: None,
    "steps": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [7, 12, 12], gamma=0.5),
    "one cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.2, total_steps=40),
    "in turn": lambda o: torch.optim.lr_scheduler.SequentialLR(o, [torch.optim.lr_scheduler.LinearLR(o, total_iters=5), torch.optim.lr_scheduler.CosineAnnealingLR(o, 20)], [5]),
}


class Exactly(Case):
    """Ten steps, a save, ten steps; and again the last ten, by another process's means."""

    def trained(self, flock, model, optimizer, schedule, batches):
        handle = flock.attach(optimizer, samples=16)
        for x in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), x[:, :3].argmax(1)).backward()
            optimizer.step()
            schedule and schedule.step()
        handle.remove()

    def both(self, optimizer_of, schedule_of, low):
        torch.manual_seed(2)
        batches, path = [torch.randn(16, 8) for _ in range(20)], os.path.join(self.folder.name, "training.pt")
        model = Model(low)
        optimizer = optimizer_of(model.parameters())
        schedule = schedule_of(optimizer)
        with self.join(model, every=4) as flock:
            self.trained(flock, model, optimizer, schedule, batches[:10])
            flock.save(path, optimizer, schedule)
            self.seed = base64.b64decode(flock._resume["resume"]["seed"])
            handle = flock.attach(optimizer)  # of a state that has gone through save
            handle.remove()
            self.trained(flock, model, optimizer, schedule, batches[10:])
        torch.manual_seed(3)
        again = Model(low)
        other = optimizer_of(again.parameters())
        plan = schedule_of(other)
        with self.join(again, every=4, resume=path, optimizer=other, scheduler=plan) as flock:
            self.assertEqual(flock.state.steps, 10)
            self.trained(flock, again, other, plan, batches[10:])
            self.assertEqual(flock.commit().steps, 20)
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, again.state_dict()[name]), name)
        for a, b in zip(optimizer.state.values(), other.state.values()):
            for key in a:
                self.assertTrue(a[key].dtype == b[key].dtype and torch.equal(a[key], b[key]), key)
        self.assertEqual(schedule and schedule.get_last_lr(), plan and plan.get_last_lr())
        self.assertEqual(holding(self.folder.name, self.seed), [])
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["log", "training.pt"])
        return path

    def test_momentum_moments_and_schedules(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, low in [("momentum", False), ("adam", False), ("adamw", True)]:
                for schedule in SCHEDULES if self.binary == FAKE else ["steps"]:
                    with self.subTest(name, schedule=schedule):
                        self.both(OPTIMIZERS[name], SCHEDULES[schedule], low)

    def test_a_state_that_was_rounded(self):
        """A framework that loads moments rounds them like a parameter in bfloat16; its master goes on from that."""
        model, x = Model(low=True), torch.randn(16, 8)
        optimizer = OPTIMIZERS["adamw"](model.parameters())
        for attached in (False, True):
            with self.join(model) as flock:
                handle = flock.attach(optimizer) if attached else None
                model(x).sum().backward()
                optimizer.step()
                self.assertEqual(optimizer.state[optimizer.param_groups[0]["params"][-1]]["exp_avg"].dtype, torch.float32 if attached else torch.bfloat16)
                handle and handle.remove()

    def test_what_does_not_fit(self):
        path = self.both(OPTIMIZERS["momentum"], SCHEDULES["none"], False)
        model = Model()
        optimizer = OPTIMIZERS["momentum"](model.parameters())
        for options, words in [({}, "the file has the state of an optimizer: give join the optimizer="), ({"optimizer": optimizer, "scheduler": SCHEDULES["steps"](optimizer)}, "no state of a scheduler")]:
            with self.assertRaisesRegex(ValueError, words):
                self.join(model, resume=path, **options)
        plan = SCHEDULES["steps"](optimizer)
        standing = {"peer": "fake", "incarnation": 1, "age": 10, "flock_steps": 10, "own": 10}
        for options, words in [({"optimizer": optimizer}, "^optimizer=: its state is in a file.*resume= is none.*load_state_dict"), ({"scheduler": plan}, "^scheduler=: ")]:
            with self.subTest(options=list(options)), self.assertRaisesRegex(ValueError, words):
                self.join(model, resume=standing, **options)
        for resume in (None, {}):  # as of a script that has not saved yet
            self.join(model, resume=resume, optimizer=optimizer, scheduler=plan).close()
        with self.assertRaisesRegex(gossipnode.Refused, "the saved model has no 0.weight"):
            self.join(nn.Sequential(nn.Linear(2, 2)), resume=path, optimizer=optimizer)
        torch.save({"format": "another"}, path)
        with self.assertRaisesRegex(ValueError, "gossipnode training 1"):
            self.join(model, resume=path)
        self.assertFalse([flock for flock in gossipnode.Flock._all if not flock._closed])

    def test_of_the_release(self):
        """A training that v0.1.0 has saved goes on, with the state that it had."""
        path = os.path.join(KEPT, "training.pt")
        self.assertTrue(os.path.exists(path), f"{path} is not there")
        content = torch.load(path, weights_only=True)
        model = Model()
        optimizer = OPTIMIZERS["adam"](model.parameters())
        plan = SCHEDULES["steps"](optimizer)
        with self.join(model, every=4, resume=path, optimizer=optimizer, scheduler=plan) as flock:
            self.assertEqual((flock.state.steps, plan.last_epoch, plan.get_last_lr()), (10, 10, [0.005]))
            for name, value in model.state_dict().items():
                self.assertTrue(torch.equal(value, {**content["model"], **content["rest"]}[name]), name)
            for number, p in enumerate(model.parameters()):
                for key, value in content["optimizer"]["state"][number].items():
                    self.assertTrue(torch.equal(optimizer.state[p][key], value), key)
            self.trained(flock, model, optimizer, plan, [torch.ones(16, 8)] * 2)
            self.assertEqual((flock.commit().steps, plan.get_last_lr()), (12, [0.00125]))

    def test_a_full_disk_keeps_the_last_file(self):
        path = self.both(OPTIMIZERS["momentum"], SCHEDULES["none"], False)
        with open(path, "rb") as file:
            before = file.read()
        model = Model()
        optimizer = OPTIMIZERS["momentum"](model.parameters())
        with self.join(model) as flock, unittest.mock.patch.object(saving.os, "fsync", side_effect=OSError(28, "No space left on device")):
            with self.assertRaisesRegex(OSError, "No space"):
                flock.save(path, optimizer)
            flock.step()
        with open(path, "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["log", "training.pt"])


@unittest.skipUnless(REAL, "the variable GOSSIPNODE names no program")
class ExactlyWithTheRealBridge(Exactly):
    binary = REAL

    def test_the_key_decides_who_it_is(self):
        """With key= it is the same peer. No file that is saved has the key, and a flock cannot be pickled."""
        key, path = os.path.join(self.folder.name, "peer.key"), os.path.join(self.folder.name, "training.pt")
        seed = key_of(key)
        model = Model()
        optimizer = OPTIMIZERS["adam"](model.parameters())
        with self.join(model, key=key) as flock:
            flock.step()
            flock.save(path, optimizer)
            flock.save(os.path.join(self.folder.name, "model.safetensors"))
            peer, standing = flock.standing["peer"], flock.standing
            with self.assertRaisesRegex(TypeError, "pickled"):
                torch.save({"mine": flock}, os.path.join(self.folder.name, "pickled"))
        self.assertEqual(sorted(standing), ["age", "flock_steps", "incarnation", "own", "peer"])
        self.assertEqual(os.stat(key).st_mode & 0o777, 0o600)
        self.assertEqual(holding(self.folder.name, seed), ["peer.key"])
        for resume in (path, standing):
            optimizers = {"optimizer": optimizer} if resume is path else {}
            with self.join(model, key=key, resume=resume, **optimizers) as flock:
                self.assertEqual((flock.standing["peer"], flock.state.steps), (peer, 1))
            with self.join(model, resume=resume, **optimizers) as flock:
                self.assertNotEqual(flock.standing["peer"], peer)
        with open(os.path.join(self.folder.name, "log")) as log:
            self.assertIn("comes back as a new member", log.read())


class Histories(Case):
    def test_lines(self):
        model = Model()
        with self.join(model, every=1, run="digits") as flock:
            flock.step(loss=1)
            flock.evaluated(0.75)
            flock.step(loss=0.5)
            lines = flock.history()
            lines[0]["step"] = 99
            self.assertEqual([line["step"] for line in flock.history()][:2], [1, 2])
        self.assertEqual(list(lines[0]), ["peer", "seconds", "step", "loss", "accuracy", "distance", "bytes", "members"])
        self.assertEqual([line["accuracy"] for line in lines], [None, 0.75])
        self.assertEqual([lines[1][k] for k in ("distance", "bytes", "members")], [None, 0, 1])
        self.assertEqual(flock.history()[-1]["step"], 2)

    def test_are_bounded(self):
        """Lines become rarer as the run gets longer."""
        from gossipnode.state import History
        with unittest.mock.patch("gossipnode.state.time.monotonic", side_effect=(now := iter(n / 10 for n in range(10 ** 7))).__next__):
            history = History()
            for _ in range(200_000):
                if history.due():
                    history.add("p", {})
        self.assertLess(len(history.lines), 2500)
        self.assertGreater(len(history.lines), 1000)
        self.assertGreater(next(now), 10_000)


@unittest.skipUnless(REAL, "the variable GOSSIPNODE names no program")
class HistoriesWithTheRealBridge(Histories):
    binary = REAL


if __name__ == "__main__":
    unittest.main()
