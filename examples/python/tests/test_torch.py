"""Torch models in a flock: with the fake bridge, and with the real one where GOSSIPNODE names it.
Where torch is not, these tests say so."""

import gc
import os
import random
import tempfile
import unittest
from array import array
from unittest import mock

import gossipnode
from gossipnode.layout import TensorRange, ranges_of

try:
    import torch
    from torch import nn
except ImportError as absent:
    raise unittest.SkipTest(f"torch is not here: {absent}")

FAKE = os.path.join(os.path.dirname(__file__), "fake_bridge.py")
REAL = os.environ.get("GOSSIPNODE")


class Case(unittest.TestCase):
    binary = FAKE

    def setUp(self):
        torch.manual_seed(1)
        torch.set_num_threads(1)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def join(self, model, **options):
        if self.binary != FAKE:
            options.setdefault("listen", "127.0.0.1:0")
        flock = gossipnode.join(model, binary=self.binary, log=os.path.join(self.folder.name, "log"), **options)
        self.addCleanup(flock._end)
        return flock


def train(model, make, steps, flock=None):
    """Steps on batches that a seed gives."""
    optimizer, draw = make(model.parameters()), torch.Generator().manual_seed(7)
    handle = flock and flock.attach(optimizer, samples=16)
    dtype = next(model.parameters()).dtype
    for _ in range(steps):
        x = torch.randn(16, 32, generator=draw)
        y = x[:, :16].argmax(1)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x.to(dtype)).float(), y).backward()
        optimizer.step()
    handle and handle.remove()
    return model


def perceptron():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 16))


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3),
    "adamw, one by one": lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=False),
}


class WithAnyBridge:
    steps, every = 24, 8

    def test_alone_is_plain_torch(self):
        """Bit for bit: joining moves the parameters, and commits of one alone change nothing."""
        for name, make in OPTIMIZERS.items():
            with self.subTest(name):
                plain = train(perceptron(), make, self.steps).state_dict()
                model = perceptron()
                with self.join(model, every=self.every) as flock:
                    train(model, make, self.steps, flock)
                    self.assertEqual(flock.commit().steps, self.steps)
                for key, value in model.state_dict().items():
                    self.assertTrue(torch.equal(value, plain[key]), key)

    def test_zero_copies(self):
        """The parameters are in the memory that is shared, before and after steps and commits."""
        model = perceptron()
        outputs = model(torch.ones(1, 32))
        with self.join(model, every=1) as flock:
            begin = torch.frombuffer(flock._memory, dtype=torch.uint8).data_ptr()
            where = {name: p.data_ptr() for name, p in model.named_parameters()}
            offset = begin
            for name, p in model.named_parameters():
                self.assertEqual(where[name], offset, name)
                offset += 4 * p.numel()
            self.assertTrue(torch.equal(outputs, model(torch.ones(1, 32))))
            train(model, OPTIMIZERS["sgd"], 3, flock)
            self.assertEqual(where, {name: p.data_ptr() for name, p in model.named_parameters()})
        del flock
        gc.collect()
        model(torch.ones(1, 32)).sum().backward()  # the memory lives as long as the model

    def test_what_goes_in_comes_out(self):
        """Of small modules of any kind: a join without a step leaves the state_dict as it is."""
        draw = random.Random(5)
        for n in range(8):
            model = some_module(draw)
            with self.subTest(n=n, model=str(model)):
                before = {k: v.clone() for k, v in model.state_dict().items()}
                x = torch.randn(4, 3, 8, 8).to(next(model.parameters()).dtype)
                model.eval()
                runs = x.dtype != torch.float16  # which this torch may not have all layers of
                said = model(x) if runs else x
                with self.join(model, buffers=draw.choice(["local", "shared"])) as flock:
                    self.assertEqual(flock.commit().steps, 0)
                after = model.state_dict()
                self.assertEqual(list(before), list(after))
                for key in before:
                    self.assertTrue(torch.equal(before[key], after[key]), key)
                    self.assertEqual((before[key].dtype, before[key].stride()), (after[key].dtype, after[key].stride()))
                self.assertTrue(torch.equal(said, model(x) if runs else x))

    def test_small_steps_of_bfloat16_are_not_lost(self):
        """A hundred steps, each far too small for the type: plain torch stands still."""
        def hundred(model, flock=None):
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
            attached = flock and flock.attach(optimizer)
            for _ in range(100):
                model(torch.ones(1, 4, dtype=model.weight.dtype)).sum().backward()
                optimizer.step()
                if not flock:
                    optimizer.zero_grad()
            if attached:
                self.assertEqual(model.weight.grad, None)
                attached.remove()
                self.assertIs(optimizer.param_groups[0]["params"][0], model.weight)
        for dtype in (torch.bfloat16, torch.float16):
            model = nn.Linear(4, 1, bias=False).to(dtype)
            nn.init.ones_(model.weight)
            hundred(model)
            self.assertTrue(torch.equal(model.weight, torch.ones_like(model.weight)))
            with self.join(model, every=3) as flock:
                hundred(model, flock)
            self.assertTrue(torch.equal(model.weight, torch.full_like(model.weight, 0.99)), model.weight)

    def test_lora(self):
        """Of adapters over a frozen base, only these are shared."""
        base = nn.Linear(32, 16)
        for p in base.parameters():
            p.requires_grad_(False)
        model = nn.ModuleDict({"base": base, "down": nn.Linear(32, 2, bias=False), "up": nn.Linear(2, 16, bias=False)})
        place = base.weight.data_ptr()
        with self.join(model) as flock:
            self.assertEqual([r.entry["name"] for r in flock._ranges], ["down.weight", "up.weight"])
        self.assertEqual(base.weight.data_ptr(), place)

    def test_numpy(self):
        import numpy
        with self.join({"w": numpy.arange(6, dtype="f4").reshape(2, 3), "b": numpy.float32(4)}, every=1) as flock:
            flock.arrays["w"][0] += 1
            flock.step()
            self.assertEqual(flock.arrays["w"].tolist(), [[1, 2, 3], [3, 4, 5]])
            self.assertEqual(flock.arrays["b"].shape, ())


def some_module(draw):
    """A module for pictures of 3 channels, 8 by 8, of layers drawn at random."""
    width = draw.choice([4, 6])
    layers = [nn.Conv2d(3, width, 3, padding=1, bias=draw.random() < 0.5)]
    for _ in range(draw.randint(1, 3)):
        layers.append(draw.choice([
            lambda: nn.BatchNorm2d(width), lambda: nn.GroupNorm(2, width), lambda: nn.Conv2d(width, width, 3, padding=1),
            lambda: nn.InstanceNorm2d(width, affine=True, track_running_stats=True), lambda: nn.PReLU(width),
            lambda: nn.utils.parametrizations.weight_norm(nn.Conv2d(width, width, 1))])())
    layers += [nn.Flatten(), nn.Linear(64 * width, 12), nn.Linear(12, 12), nn.LayerNorm(12), nn.Linear(12, 12)]
    model = nn.Sequential(*layers)
    if draw.random() < 0.5:
        model[-1].weight = model[-3].weight  # tied
    if draw.random() < 0.5:
        model[-4].weight.requires_grad_(False)
    if draw.random() < 0.4:
        model.to(memory_format=torch.channels_last)
    if draw.random() < 0.4:
        model.to(draw.choice([torch.bfloat16, torch.float16]) if width == 4 else torch.bfloat16)
    return model


class WithTheFakeBridge(WithAnyBridge, Case):
    def test_what_others_do_arrives(self):
        """In place, in staged tensors and in shared buffers, under the optimizer's feet."""
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).bfloat16()
        model[0].float()
        with torch.no_grad():
            for p in [*model.parameters(), model[1].running_mean]:
                p.fill_(1)
        with self.join(model, every=1, drift=0.5, buffers="shared") as flock:
            flock.step()
            flock.step()
            for value in [*model.parameters(), model[1].running_mean]:
                self.assertTrue(torch.equal(value, torch.full_like(value, 2)))

    def test_a_signal_in_a_commit_keeps_what_others_did(self):
        model = nn.Linear(2, 2, bias=False).bfloat16()
        nn.init.ones_(model.weight)
        with self.join(model, every=1, drift=0.5) as flock:
            connection, read = flock._sidecar.connection, flock._sidecar.connection._read
            connection._read = lambda: (_ for _ in ()).throw(KeyboardInterrupt)
            with self.assertRaises(KeyboardInterrupt):
                flock.step()
            connection._read = read
            flock.step()
            self.assertTrue(torch.equal(model.weight, torch.full_like(model.weight, 2)))

    def test_a_signal_while_an_answer_is_taken(self):
        """What others did arrives in all tensors, once: those that had it before the signal, and those that had not."""
        for overlap in (False, True):
            model = nn.Linear(2, 2).bfloat16()
            for p in model.parameters():
                nn.init.ones_(p)
            with self.join(model, every=1, drift=0.5, overlap=overlap) as flock:
                flock._history.due = lambda: False
                second = flock._tensors[1]
                name = "correct" if overlap else "take"
                whole = getattr(TensorRange, name)

                def cut(tensor):
                    if tensor is second:
                        raise KeyboardInterrupt
                    whole(tensor)

                flock._post()
                with mock.patch.object(TensorRange, name, autospec=True, side_effect=cut), self.assertRaises(KeyboardInterrupt):
                    flock._settle()
                flock._settle()
                for p in model.parameters():
                    self.assertTrue(torch.equal(p, torch.full_like(p, 1.5)), p)
                self.assertFalse(flock._posted)


class Layout(unittest.TestCase):
    def test_names_kinds_and_sharing(self):
        model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(2, 3), nn.Embedding(5, 3), nn.LSTM(3, 3))
        model[4].weight.requires_grad_(False)
        model.register_buffer("rope", torch.ones(3), persistent=False)
        self.assertEqual([(e["name"], e["kind"], e["sharing"]) for e in (r.entry for r in ranges_of(model))], [
            ("0.weight", "conv", "shared"), ("0.bias", "bias", "shared"), ("1.weight", "norm", "shared"), ("1.bias", "norm", "shared"),
            ("1.running_mean", "statistic", "local"), ("1.running_var", "statistic", "local"),
            ("3.weight", "dense", "shared"), ("3.bias", "bias", "shared"), ("5.weight_ih_l0", "dense", "shared"),
            ("5.weight_hh_l0", "dense", "shared"), ("5.bias_ih_l0", "bias", "shared"), ("5.bias_hh_l0", "bias", "shared")])
        order = [k for k in model.state_dict() if "num_batches" not in k and not k.startswith("4.")]
        self.assertEqual([r.entry["name"] for r in ranges_of(model)], order)

    def test_what_cannot_be_shared(self):
        def holding(tensor):
            module = nn.Module()
            module.w = tensor if isinstance(tensor, nn.Parameter) else nn.Parameter(tensor)
            return module
        same = nn.Module()
        same.a = nn.Parameter(torch.ones(3))
        same.b = nn.Parameter(same.a.data)
        for model, words in [
            (holding(torch.ones(2, dtype=torch.float64)), "float64.*model.float"), (holding(torch.ones(2, dtype=torch.complex64)), "complex.*view_as_real"),
            (holding(torch.eye(2).to_sparse()), "sparse.*dense"), (holding(torch.empty(2, device="meta")), "no values.*one batch"),
            (nn.LazyLinear(3), "no values"), (same, "b and a.*a.weight = b.weight"), (holding(nn.Parameter(torch.ones(2), requires_grad=False)), "requires_grad_"),
        ]:
            with self.assertRaisesRegex(gossipnode.Refused, words) as refused:
                ranges_of(model)
            self.assertEqual(refused.exception.code, "layout")

    def test_float64_buffers(self):
        model = nn.Linear(2, 2)
        model.register_buffer("seen", torch.zeros(1, dtype=torch.float64))
        self.assertEqual(len(ranges_of(model)), 2)  # it stays in torch
        with self.assertRaises(gossipnode.Refused):
            ranges_of(model, "shared")


class Moved(Case):
    def test_a_model_is_in_one_flock(self):
        model = perceptron()
        with self.assertRaises(gossipnode.Refused):
            self.join(model, unknown="x")  # which is no flock
        flock = self.join(model)
        for again in (model, model[0], nn.Sequential(model, nn.Linear(16, 2))):
            with self.assertRaisesRegex(gossipnode.Refused, "in a flock already.*copy.deepcopy"):
                self.join(again)
        flock.step(loss=torch.ones(1))
        with self.assertRaisesRegex(TypeError, r"loss is a Tensor\[2\]"):
            flock.step(loss=torch.ones(2))
        flock.close()
        self.join(model).close()

    def test_is_noticed_before_a_commit(self):
        def replaced(m):
            m.weight = nn.Parameter(torch.ones(2, 2))

        def gone(m):
            m.weight.data = m.weight.data.clone()
        for change in (lambda m: m.half(), lambda m: m.double(), replaced, gone):
            for model in (nn.Linear(2, 2), nn.Linear(2, 2).bfloat16()):
                if change is gone and model.weight.dtype == torch.bfloat16:
                    continue  # staged: it may be anywhere
                flock = self.join(model, every=1)
                change(model)
                with self.assertRaisesRegex(gossipnode.Refused, "weight has been moved.*close the flock"):
                    flock.step()
                self.assertEqual(flock.stats()["steps"], 0)
                flock._end()

    def test_new_buffers_are_none(self):
        model = nn.BatchNorm1d(2)
        with self.join(model, every=1, buffers="shared", drift=1) as flock:
            model.running_mean = torch.full((2,), 5.0)
            flock.step()
            self.assertEqual(model.running_mean.tolist(), [6, 6])


@unittest.skipUnless(REAL, "the variable GOSSIPNODE names no program")
class WithTheRealBridge(WithAnyBridge, Case):
    binary = REAL
    steps, every = 200, None

    def test_other_frozen_weights_are_warned_of(self):
        def adapted(base):
            return nn.Sequential(nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 2)) if base is None else nn.Sequential(base, nn.Linear(4, 2))
        first, other = adapted(None), adapted(None)
        for model, warned in ((adapted(first[0]), False), (other, True)):
            founder = self.join(first)
            with self.join(model, peers=founder.address) as flock:
                flock.wait(2)
            founder.close()
            with open(os.path.join(self.folder.name, "log")) as log:
                self.assertEqual("frozen weights" in log.read(), warned)


if __name__ == "__main__":
    unittest.main()
