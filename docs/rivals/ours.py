"""A member in gossipnode's flock, by the package of examples/python."""

import gossipnode

import meet
import task

member = task.Member()
peers = [meet.await_mark(member.folder, "address")] if member.rank else []
flock = gossipnode.join(member.net, run="race", peers=peers, listen="127.0.0.1:0", timeout=120, steps=member.steps,
                        codec=member.codec)
if not member.rank:
    meet.mark(member.folder, "address", flock.addresses[0])
flock.wait(member.world, timeout=120)
member.begin()
while not flock.state.over:
    loss = member.gradient(flock.state.progress)
    member.optimizer.step()
    flock.step(samples=task.BATCH, loss=loss)
    member.counted()
stats = flock.stats()
flock.close()
member.end(stats=stats)
