"""A replica group of one process of torchft's: LocalSGD, or DiLoCo where the arm names an outer rate.

As in torchft's local_sgd_integ_test.py, which its README names as the example, but for equal initial values.
"""

import torch
import torch.distributed as dist
from torchft import Manager, ProcessGroupGloo
from torchft.local_sgd import DiLoCo, LocalSGD

import task

member = task.Member()
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
diloco = hasattr(member, "outer")
manager = Manager(
    pg=ProcessGroupGloo(), min_replica_size=1, rank=0, world_size=1, store_addr="127.0.0.1", store_port=store.port,
    load_state_dict=lambda state: (member.net.load_state_dict(state["model"]), member.optimizer.load_state_dict(state["optimizer"])),
    state_dict=lambda: {"model": member.net.state_dict(), "optimizer": member.optimizer.state_dict()},
    replica_id=str(member.rank), lighthouse_addr="http://127.0.0.1:29510", hostname="127.0.0.1", use_async_quorum=False, init_sync=False)
if diloco:  # Nesterov's momentum outside, of the paper
    outer = torch.optim.SGD(member.net.parameters(), lr=member.outer, momentum=0.9, nesterov=True)
    averaging = DiLoCo(manager, [member.net], member.optimizer, outer, sync_every=member.every, should_quantize=getattr(member, "quantize", False))
else:
    averaging = LocalSGD(manager, member.net, member.optimizer, sync_every=member.every)
member.begin()
with averaging:
    for step in range(member.steps):
        member.gradient(step / member.steps)
        member.optimizer.step()
        member.counted()
member.end(syncs=manager.current_step(), took_part=manager.num_participants())
manager.shutdown(wait=False)
