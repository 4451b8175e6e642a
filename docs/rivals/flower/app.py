"""The race's task as a Flower App: FedAvg over four clients, some steps of each in a round."""

import json
import os
import time

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg

import meet
import task

client = ClientApp()
server = ServerApp()


@client.train()
def train(message, context):
    """A round's steps. A ClientApp is a process of its own in each round: its batches go on where the last round ended."""
    member = task.Member()
    member.net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    done = (message.content["config"]["server-round"] - 1) * member.every
    for _ in range(done):
        next(member.batches)
    member.times.append(time.monotonic())
    for step in range(done, done + member.every):
        member.gradient(step / member.steps)
        member.optimizer.step()
        member.counted(before=done)
    return Message(RecordDict({"arrays": ArrayRecord(member.net.state_dict()), "metrics": MetricRecord({"num-examples": member.every * task.BATCH})}), reply_to=message)


@server.main()
def main(grid, context):
    known = meet.settings()
    net, began = task.model(known["seed"]), []
    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=1, min_available_nodes=known["world"])
    while len(list(grid.get_node_ids())) < known["world"]:
        time.sleep(0.1)
    meet.mark(known["folder"], "ready.0")
    meet.await_mark(known["folder"], "go")
    began.append(time.monotonic())

    def judged(turn, arrays):
        began.append(time.monotonic())

    rounds = known["steps"] // known["every"]
    result = strategy.start(grid=grid, initial_arrays=ArrayRecord(net.state_dict()), num_rounds=rounds, evaluate_fn=judged, timeout=120)
    ended = time.monotonic()
    meet.mark(known["folder"], "done.0")
    meet.await_mark(known["folder"], "judge")
    net.load_state_dict(result.arrays.to_torch_state_dict())
    meet.mark(known["folder"], "result.0", json.dumps({
        "accuracy": task.accuracy(net, known["data"]), "seconds": ended - began[0], "share_seconds": ended - began[0], "steps": known["steps"],
        "longest": max(b - a for a, b in zip(began[1:], began[2:])), "rounds": rounds}))
