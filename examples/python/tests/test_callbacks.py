"""The callbacks for transformers' Trainer and Lightning's, each where it is: with the fake bridge, and with the real
one where GOSSIPNODE names it. No file that the two write holds the peer's key."""

import base64
import json
import logging
import os
import socket
import subprocess
import sys
import unittest
import warnings
from unittest import mock

import gossipnode

try:
    import torch
    from torch import nn
except ImportError as absent:
    raise unittest.SkipTest(f"torch is not here: {absent}")

try:
    import accelerate  # noqa: F401  Trainer needs it
    import transformers
    from gossipnode import huggingface
except ImportError as absent:
    transformers, no_transformers = None, f"transformers with accelerate is not here: {absent}"
else:
    no_transformers = ""
try:
    import lightning.pytorch as pl
    from gossipnode import lightning as ours
except ImportError as absent:
    pl, no_lightning = None, f"lightning is not here: {absent}"
else:
    no_lightning = ""

from .test_saving import holding, key_of
from .test_torch import FAKE, REAL, Case as TorchCase

KEY_OF_THE_FAKE = bytes(range(7, 39))
for name in ("lightning.pytorch", "transformers"):
    logging.getLogger(name).setLevel(logging.ERROR)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.layers = nn.Sequential(nn.Linear(8, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Linear(12, 3))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def rows(count=48):
    torch.manual_seed(6)
    xs = torch.randn(count, 8)
    return [{"x": x, "labels": x[:3].argmax()} for x in xs]


class Case(TorchCase):
    def setUp(self):
        super().setUp()
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore")
        self.out = os.path.join(self.folder.name, "out")

    def options(self, **more):
        if self.binary != FAKE:
            more.setdefault("listen", "127.0.0.1:0")
        return {"binary": self.binary, "log": os.path.join(self.folder.name, "log"), "every": 3, **more}

    def same(self, one, other):
        for name, value in one.state_dict().items():
            self.assertTrue(torch.equal(value, other.state_dict()[name]), name)

    def keys(self, callback):
        """That no file has the key of the callback's peer, whichever it is."""
        seed = base64.b64decode(callback.flock._resume["resume"]["seed"])
        self.assertEqual(holding(self.folder.name, seed), [])
        return seed


@unittest.skipIf(transformers is None, no_transformers)
class Transformers(Case):
    def trainer(self, steps=12, options=None, **arguments):
        model, callback = Net(), huggingface.FlockCallback(**self.options(**options or {}))
        args = transformers.TrainingArguments(**{"output_dir": self.out, "max_steps": steps, "save_steps": 5, "per_device_train_batch_size": 8, "learning_rate": 0.01, "logging_steps": 2,
                                                 "report_to": "none", "use_cpu": True, "disable_tqdm": True, "seed": 3, **arguments})
        trainer = transformers.Trainer(model, args, train_dataset=rows(), eval_dataset=rows(16), callbacks=[callback],
                                       compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())})
        trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
        return trainer, model, callback

    def test_a_checkpoint_goes_on_exactly(self):
        trainer, model, callback = self.trainer()
        trainer.train()
        self.assertEqual(callback.flock.state.steps, 12)
        with open(os.path.join(self.out, "checkpoint-5", "trainer_state.json")) as file:
            self.assertEqual(json.load(file)["stateful_callbacks"]["gossipnode"]["own"], 5)
        self.keys(callback)
        self.assertTrue(any(line["loss"] for line in callback.flock.history()) or self.binary == FAKE)
        again, other, callback = self.trainer()
        again.train(resume_from_checkpoint=os.path.join(self.out, "checkpoint-5"))
        self.assertEqual(callback.flock.state.steps, 12)
        self.same(model, other)
        self.keys(callback)

    def test_the_flocks_end_is_the_trainings(self):
        trainer, _, callback = self.trainer(steps=1000, options={"steps": 6}, eval_strategy="steps", eval_steps=4, gradient_accumulation_steps=2)
        trainer.train()
        self.assertTrue(callback.flock.state.over)
        self.assertLess(trainer.state.global_step, 12)
        self.assertIsNotNone(callback.flock.history()[-1]["accuracy"])

    def test_what_is_refused(self):
        trainer, model, callback = self.trainer(options={"key": os.path.join(self.out, "peer.key")})
        with self.assertRaisesRegex(gossipnode.Refused, "may be pushed to a hub.*folder of its own"):
            trainer.train()
        with self.assertRaisesRegex(gossipnode.Refused, "load_best_model_at_end"):
            self.trainer(load_best_model_at_end=True, eval_strategy="steps", eval_steps=5)[0].train()
        trainer, model, callback = self.trainer()
        model.forward = lambda x, labels=None: 1 / 0
        with self.assertRaises(ZeroDivisionError):
            trainer.train()
        process = callback.flock._sidecar.process
        callback.leave()
        self.assertEqual(process.returncode, 1)


@unittest.skipIf(pl is None, no_lightning)
class Lightning(Case):
    def fit(self, steps=12, options=None, checkpoint=None, fails=False, **arguments):
        class Module(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = Net()

            def training_step(self, batch, _):
                if fails:
                    raise ZeroDivisionError
                return self.net(**batch)["loss"]

            def validation_step(self, batch, _):
                self.log("val_acc", (self.net(**batch)["logits"].argmax(1) == batch["labels"]).float().mean())

            def configure_optimizers(self):
                optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
                return [optimizer], [{"scheduler": torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=40), "interval": "step"}]

        module, callback = Module(), ours.FlockCallback(**self.options(**options or {}))
        saver = pl.callbacks.ModelCheckpoint(dirpath=self.out, every_n_train_steps=6, save_top_k=-1, filename="{step}")
        trainer = pl.Trainer(**{"max_steps": steps, "accelerator": "cpu", "devices": 1, "logger": False, "callbacks": [callback, saver], "enable_progress_bar": False,
                                "enable_model_summary": False, "default_root_dir": self.folder.name, "num_sanity_val_steps": 0, **arguments})
        batches = torch.utils.data.DataLoader(rows(), batch_size=8)
        trainer.fit(module, batches, torch.utils.data.DataLoader(rows(16), batch_size=8), ckpt_path=checkpoint)
        return trainer, module, callback

    def test_a_checkpoint_goes_on_exactly(self):
        _, model, callback = self.fit()
        self.assertEqual(callback.flock.state.steps, 12)
        path = os.path.join(self.out, "step=6.ckpt")
        saved = torch.load(path, weights_only=True)["callbacks"]["FlockCallback"]
        self.assertEqual((saved["own"], sorted(saved)), (6, ["age", "flock_steps", "incarnation", "own", "peer"]))
        self.keys(callback)
        self.assertIsNotNone(callback.flock.history()[-1]["accuracy"])
        _, other, callback = self.fit(checkpoint=path)
        self.assertEqual(callback.flock.state.steps, 12)
        self.same(model, other)
        self.keys(callback)

    def test_the_flocks_end_is_the_trainings(self):
        with mock.patch.object(gossipnode.Flock, "step", autospec=True, side_effect=gossipnode.Flock.step) as step:
            trainer, _, callback = self.fit(steps=1000, options={"steps": 6}, accumulate_grad_batches=2)
        self.assertEqual({call.args[1] for call in step.call_args_list}, {16})  # samples: two batches of 8
        self.assertTrue(callback.flock.state.over)
        self.assertLess(trainer.global_step, 12)

    def test_a_module_that_fails(self):
        with self.assertRaises(ZeroDivisionError):
            self.fit(fails=True)
        self.assertFalse([flock for flock in gossipnode.Flock._all if not flock._closed])


@unittest.skipUnless(REAL, "the variable GOSSIPNODE names no program")
class TransformersWithTheRealBridge(Transformers):
    binary = REAL

    def test_the_key_is_whose_peer_it_is(self):
        key = os.path.join(self.folder.name, "keys", "peer.key")
        os.mkdir(os.path.dirname(key))
        seed = key_of(key)
        trainer, _, callback = self.trainer(steps=5, options={"key": key})
        trainer.train()
        peer = callback.flock.standing["peer"]
        again, _, callback = self.trainer(steps=7, options={"key": key})
        again.train(resume_from_checkpoint=True)
        self.assertEqual((callback.flock.standing["peer"], callback.flock.state.steps), (peer, 7))
        self.assertEqual(holding(self.folder.name, seed), ["peer.key"])


@unittest.skipUnless(REAL, "the variable GOSSIPNODE names no program")
class LightningWithTheRealBridge(Lightning):
    binary = REAL

    def test_the_key_is_whose_peer_it_is(self):
        key = os.path.join(self.folder.name, "peer.key")
        seed = key_of(key)
        _, _, callback = self.fit(steps=6, options={"key": key})
        peer = callback.flock.standing["peer"]
        _, _, callback = self.fit(steps=7, options={"key": key}, checkpoint=os.path.join(self.out, "step=6.ckpt"))
        self.assertEqual((callback.flock.standing["peer"], callback.flock.state.steps), (peer, 7))
        self.assertEqual(holding(self.folder.name, seed), ["peer.key"])


PROCESS = """
import hashlib, json, os, sys, warnings
warnings.simplefilter("ignore")
from tests import test_callbacks as t
case = (t.Transformers if sys.argv[1] == "Trainer" else t.Lightning)()
case.setUp()
case.out = sys.argv[2]
if sys.argv[1] == "Trainer":
    trainer, model, callback = case.trainer(steps=7, options={"drift": 0.5}, ddp_backend="gloo")
    trainer.train()
else:
    _, model, callback = case.fit(steps=7, options={"drift": 0.5}, devices=2, strategy="ddp", num_sanity_val_steps=0)
values = hashlib.sha256(b"".join(v.float().numpy().tobytes() for n, v in model.state_dict().items() if "running" not in n)).hexdigest()
print("said", json.dumps([values, callback.flock.state.steps, callback.flock._ranks.count]), flush=True)
case.doCleanups()
"""


@unittest.skipUnless(torch.distributed.is_available(), "torch here has no torch.distributed")
class Together(Case):
    """Two processes of a Trainer are one peer, as its callback finds out."""

    def both(self, framework):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        processes = []
        for rank in "01":
            environment = {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "RANK": rank, "LOCAL_RANK": rank, "NODE_RANK": "0",
                           "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            processes.append(subprocess.Popen([sys.executable, "-c", PROCESS, framework, self.out], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            self.addCleanup(processes[-1].communicate)
            self.addCleanup(processes[-1].kill)
        said = []
        for process in processes:
            out, err = process.communicate(timeout=400)
            self.assertEqual(process.returncode, 0, err)
            said.append(next(json.loads(line[4:]) for line in out.splitlines() if line.startswith("said")))
        self.assertEqual(said[0], said[1])
        self.assertEqual(said[0][1:], [7, 2])
        self.assertTrue(os.listdir(self.out))
        self.assertEqual(holding(self.folder.name, KEY_OF_THE_FAKE), [])

    @unittest.skipIf(transformers is None, no_transformers)
    def test_transformers(self):
        self.both("Trainer")

    @unittest.skipIf(pl is None, no_lightning)
    def test_lightning(self):
        self.both("Lightning")


if __name__ == "__main__":
    unittest.main()
