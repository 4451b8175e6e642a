"""A rank of torch's DistributedDataParallel over gloo."""

import os

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import task

member = task.Member()
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
dist.init_process_group("gloo", rank=member.rank, world_size=member.world)
member.forward = DistributedDataParallel(member.net)
member.begin()
for step in range(member.steps):
    member.gradient(step / member.steps)
    member.optimizer.step()
    member.counted()
member.end()
