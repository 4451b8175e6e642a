"""Flower's FedAvg by start_server and start_client: the server (rank -1), or one of its clients.

Flower has deprecated these two for SuperLink and SuperNodes, whose ClientApp is a new process in each round; here a client
is one process for the whole run, so that what is timed is training and not Python's start.
"""

import json
import time

import flwr
import torch

import meet
import task

known = meet.settings()
ADDRESS = "127.0.0.1:8080"


def values(net):
    return [p.detach().numpy() for p in net.state_dict().values()]


def load(net, arrays):
    net.load_state_dict(dict(zip(net.state_dict(), map(torch.tensor, arrays))))


class Client(flwr.client.NumPyClient):
    def __init__(self):
        self.member, self.done = task.Member(), 0
        self.member.times.append(0)

    def fit(self, parameters, config):
        member = self.member
        load(member.net, parameters)
        member.optimizer.state.clear()  # a new optimizer a round, as in Flower's tutorials
        for _ in range(member.every):
            member.gradient(self.done / member.steps)
            member.optimizer.step()
            self.done += 1
            member.counted()
        return values(member.net), member.every * task.BATCH, {}


class Server(flwr.server.Server):
    """Waits for all clients, and for the start, before the first round."""

    def fit(self, num_rounds, timeout):
        self.client_manager().wait_for(known["world"])
        meet.mark(known["folder"], "ready.-1")
        meet.await_mark(known["folder"], "go")
        self.began = time.monotonic()
        answer = super().fit(num_rounds, timeout)
        self.ended = time.monotonic()
        meet.mark(known["folder"], "done.-1")
        meet.await_mark(known["folder"], "judge")
        return answer


def serve():
    net, times, last = task.model(known["seed"]), [], []

    def judged(turn, arrays, config):
        times.append(time.monotonic())
        last[:] = arrays

    strategy = flwr.server.strategy.FedAvg(
        fraction_evaluate=0.0, min_fit_clients=1, min_available_clients=1, evaluate_fn=judged,
        initial_parameters=flwr.common.ndarrays_to_parameters(values(net)))
    server, rounds = Server(client_manager=flwr.server.SimpleClientManager(), strategy=strategy), known["steps"] // known["every"]
    flwr.server.start_server(server_address=ADDRESS, server=server, config=flwr.server.ServerConfig(num_rounds=rounds))
    load(net, last)
    seconds = server.ended - server.began
    meet.mark(known["folder"], "result.-1", json.dumps({
        "accuracy": task.accuracy(net, known["data"]), "seconds": seconds, "share_seconds": seconds, "steps": known["steps"],
        "longest": max(b - a for a, b in zip(times, times[1:])), "rounds": rounds}))


if known["rank"] < 0:
    serve()
else:
    flwr.client.start_client(server_address=ADDRESS, client=Client().to_client(), insecure=True)
