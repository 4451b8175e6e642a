"""A peer of several processes, each with its part of a batch and torch's DistributedDataParallel between them."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from .test_flock import running

try:
    import torch
    import torch.distributed
except ImportError as absent:
    raise unittest.SkipTest(f"torch is not here: {absent}")
if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    raise unittest.SkipTest("torch here has no gloo")

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FAKE = os.path.join(PACKAGE, "tests", "fake_bridge.py")
REAL = os.environ.get("GOSSIPNODE")

# One process of a peer: what it does is in the dict asked.
PROCESS = """
import hashlib, json, os, signal, sys, time, warnings
import torch, torch.distributed as dist
import gossipnode
warnings.simplefilter("ignore", UserWarning)
asked = json.loads(sys.argv[1])
rank = asked["rank"]
dist.init_process_group("gloo", init_method="file://" + asked["meet"], rank=rank, world_size=asked["world"])
torch.manual_seed(rank)
model = torch.nn.Sequential(torch.nn.Linear(20, 16), torch.nn.ReLU(), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 2))
ddp = torch.nn.parallel.DistributedDataParallel(model) if asked.get("ddp", True) else model
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
said = {}
def values():
    return hashlib.sha256(b"".join(v.float().numpy().tobytes() for v in model.state_dict().values())).hexdigest()
with gossipnode.join(ddp, timeout=300, **asked["join"]) as flock:
    if flock._sidecar.process:
        print(flock._sidecar.process.pid, flush=True)
    for n in range(asked["steps"]):
        x = torch.randn(16, 20)
        loss = torch.nn.functional.cross_entropy(ddp(x), (x.sum(1) > 0).long())
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        if asked.get("dies") == [rank, n]:
            os.kill(os.getpid(), signal.SIGKILL)
        if asked.get("stumbles") == [rank, n]:
            raise ValueError("of this process alone")
        if asked.get("kills") == n and rank == 0:
            flock._sidecar.process.kill()
        if asked.get("skips") == [rank, n]:
            flock._since.steps -= 1
        if asked.get("spoils") == n:
            model[0].weight.data[0, 0] = float("nan")
        try:
            over = flock.step(samples=16, loss=loss).over
        except gossipnode.Refused as err:
            said["refused"] = err.code
            break
        if over:
            break
    else:
        if "save" in asked:
            flock.save(asked["save"], optimizer)
            said["saved"] = values()
    if "refused" in said:
        flock._end(closed=True)
    said["state"] = flock.close(merge=True).__dict__ if "refused" not in said else {}
print(json.dumps({**said, "values": values(), "history": len(flock.history())}), flush=True)
dist.destroy_process_group()
"""


class Case(unittest.TestCase):
    binary = FAKE

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def peer(self, name, world=2, steps=20, **asked):
        """The processes of one peer."""
        options = {"binary": self.binary, "run": "ranks", **asked.pop("join", {})}
        if self.binary != FAKE:
            options.setdefault("listen", "127.0.0.1:0")
        environment = {**os.environ, "PYTHONPATH": PACKAGE, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        processes = []
        for rank in range(world):
            one = {"rank": rank, "world": world, "meet": os.path.join(self.folder.name, name), "steps": steps, "join": options, **asked}
            processes.append(subprocess.Popen([sys.executable, "-c", PROCESS, json.dumps(one)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            self.addCleanup(processes[-1].communicate)
            self.addCleanup(processes[-1].kill)
        return processes

    def ended(self, process, code=0):
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, code, err)
        return out.splitlines(), err

    def said(self, processes):
        return [json.loads(self.ended(p)[0][-1]) for p in processes]


class WithTheFakeBridge(Case):
    def test_all_have_what_the_first_is_told(self):
        """Steps are those of all; values and states are the same, though the flock has changed them."""
        first, second = self.said(self.peer("p", join={"drift": 0.5, "quantum": 3, "steps": 12}))
        self.assertEqual((first["values"], first["state"]), (second["values"], second["state"]))
        self.assertEqual((first["state"]["steps"], first["state"]["over"]), (12, True))
        self.assertTrue(first["history"] > 0 == second["history"])

    def test_without_ddp(self):
        first, second = self.said(self.peer("p", ddp=False, join={"ranks": True, "every": 1, "steps": 12}))
        self.assertEqual(first["values"], second["values"])  # the first's

    def test_three_and_a_posted_commit(self):
        said = self.said(self.peer("p", world=3, join={"overlap": True, "drift": 0.5, "every": 2, "steps": 12}))
        self.assertEqual(len({one["values"] for one in said}), 1)

    def test_a_sidecar_that_dies(self):
        first, second = self.said(self.peer("p", kills=4, join={"every": 2}))
        self.assertEqual((first["values"], first["state"]), (second["values"], second["state"]))
        self.assertEqual(first["state"]["steps"], 18)  # two were not handed over: they are in the values alone

    def test_refusals_are_those_of_all(self):
        first, second = self.said(self.peer("p", spoils=4, join={"every": 2}))
        self.assertEqual((first["refused"], second["refused"]), ("notfinite", "notfinite"))
        for process in self.peer("q", join={"unknown": "x"}):
            self.assertIn("Refused: settings: no flag --unknown", self.ended(process, 1)[1])

    def test_a_program_that_is_not_there(self):
        for process in self.peer("p", join={"binary": "/nowhere/gossipnode"}):
            self.assertIn("FileNotFoundError: no program", self.ended(process, 1)[1])

    def test_saved_and_resumed(self):
        path = os.path.join(self.folder.name, "training.pt")
        said = self.said(self.peer("p", steps=7, save=path, join={"every": 3}))
        self.assertEqual({one["saved"] for one in said}, {said[0]["values"]})
        again = self.said(self.peer("q", steps=0, join={"resume": path}))
        self.assertEqual({one["values"] for one in again}, {said[0]["values"]})
        self.assertEqual([one["state"]["steps"] for one in again], [7, 7])

    def test_a_process_that_dies_ends_the_peer(self):
        """Whether it is the one with the sidecar or not, in a commit of every step or between two: all end, with a
        clear error, and the sidecar."""
        for every, dies in ((1, 0), (1, 1), (100, 1)):
            with self.subTest(every=every, dies=dies):
                processes = self.peer(f"p{every}{dies}", dies=[dies, 5], steps=10 ** 6, join={"every": every})
                out, err = self.ended(processes[1 - dies], 1)
                self.assertRegex(err, "RankLost: another process of this peer has died.*start all its processes again")
                self.ended(processes[dies], -9)
                if dies == 1:
                    self.assertFalse(running(int(out[0])))

    def test_one_that_fails_alone_ends_the_peer(self):
        first, second = self.peer("p", stumbles=[1, 5], steps=10 ** 6, join={"every": 1})
        self.assertIn("of this process alone", self.ended(second, 1)[1])
        self.assertIn("RankLost", self.ended(first, 1)[1])

    def test_steps_that_differ(self):
        for process in self.peer("p", skips=[1, 0], ddp=False, steps=10 ** 6, join={"ranks": True, "every": 4}):
            self.assertRegex(self.ended(process, 1)[1], r"RankLost: .*(steps since the last commit: all have to|has died, stands still or has ended)")


@unittest.skipUnless(REAL, "the variable GOSSIPNODE names no program")
class WithTheRealBridge(Case):
    binary = REAL

    def two(self, **of_second):
        """Two peers of two processes, which have met."""
        first = self.peer("first", join={"members": 2, "steps": 400, "final": "merge"}, steps=10 ** 6)
        address = next(line for line in first[0].stderr if "others join" in line).split()[-1]
        return first, self.peer("second", **{"join": {"members": 2, "peers": address, "steps": 400, "final": "merge"}, "steps": 10 ** 6, **of_second})

    def test_two_peers_of_two_processes(self):
        first, second = self.two()
        said = self.said([*second, *first])
        self.assertEqual(len({one["values"] for one in said[:2]}), 1)
        self.assertEqual(len({one["values"] for one in said[2:]}), 1)
        for one in said:
            self.assertTrue(one["state"]["over"] and one["state"]["joined"] and one["state"]["merged"], one)

    def test_a_process_of_one_dies(self):
        """Its peer ends, and the other one trains on to its end."""
        first, second = self.two(dies=[1, 40])
        out, err = self.ended(second[0], 1)
        self.assertIn("RankLost", err)
        self.assertFalse(running(int(out[0])))
        self.ended(second[1], -9)
        for one in self.said(first):
            self.assertTrue(one["state"]["over"] and one["state"]["joined"], one)


if __name__ == "__main__":
    unittest.main()
