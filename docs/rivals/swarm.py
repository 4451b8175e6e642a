"""A peer of Hivemind's: hivemind.Optimizer, which averages gradients of a target batch, or models with local updates."""

import time

import hivemind
import torch
from hivemind.compression import Float16Compression, NoCompression, Uniform8BitQuantization

import meet
import task

CODECS = {"none": NoCompression, "float16": Float16Compression, "8bit": Uniform8BitQuantization}

member = task.Member()
peers = [meet.await_mark(member.folder, "address")] if member.rank else []
dht = hivemind.DHT(initial_peers=peers, host_maddrs=["/ip4/127.0.0.1/tcp/0"], start=True)
if not member.rank:
    meet.mark(member.folder, "address", str(dht.get_visible_maddrs()[0]))
epochs = member.steps * member.world * task.BATCH // member.target
codec = CODECS[member.codec]()
optimizer = hivemind.Optimizer(
    dht=dht, run_id="race", batch_size_per_step=task.BATCH, target_batch_size=member.target, params=member.net.parameters(),
    optimizer=lambda params: torch.optim.SGD(params, lr=member.rate, momentum=task.MOMENTUM),
    scheduler=lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda epoch: max(1 - epoch / epochs, 0)),
    use_local_updates=member.local, grad_compression=codec, state_averaging_compression=codec, matchmaking_time=member.matchmaking,
    averaging_timeout=10.0, delay_state_averaging=member.delayed,
    averager_opts={"target_group_size": member.world, "request_timeout": member.matchmaking / 3}, tracker_opts={"min_refresh_period": 0.1, "default_refresh_period": 0.2, "max_refresh_period": 1.0})
member.optimizer = optimizer
member.gradient(None)
optimizer.step()  # peers know of those that have reported a step; all know of all before the race begins
while optimizer.tracker.global_progress.num_peers < member.world:
    time.sleep(0.1)
member.begin()
while optimizer.local_epoch < epochs:
    member.gradient(None)
    optimizer.step()
    member.counted()
member.end(epoch=optimizer.local_epoch)
optimizer.shutdown()
dht.shutdown()
