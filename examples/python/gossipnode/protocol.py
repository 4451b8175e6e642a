"""The control lines of docs/BRIDGE.md, version 1: one JSON object asks, one answers."""

import contextlib
import json
import os
import select
import socket
import weakref
from typing import Any, Dict, Tuple

VERSION = 1

Answer = Dict[str, Any]


class Refused(Exception):
    """The bridge does not do what was asked for, and nothing has changed by it.

    code is one of docs/BRIDGE.md's, detail tells what happened, remedy what to do about it
    (both may be empty). fatal tells that the bridge has ended."""

    def __init__(self, code: str, detail: str = "", remedy: str = "", fatal: bool = False):
        super().__init__(": ".join(part for part in (code, detail, remedy) if part))
        self.code, self.detail, self.remedy, self.fatal = code, detail, remedy, fatal

    def __reduce__(self) -> Tuple[Any, ...]:
        return Refused, (self.code, self.detail, self.remedy, self.fatal)


class Lost(Exception):
    """The bridge's process has ended unasked. The model is as the trainer left it."""


class Connection:
    """One end of the control socket, for one thread. A forked child, such as a DataLoader's worker, would keep it
    open after the trainer's death: it is closed there (and never shut down, which would end the parent's)."""

    _open: "weakref.WeakSet[socket.socket]" = weakref.WeakSet()  # the sockets of this process

    def __init__(self, sock: socket.socket):
        self._sock = sock
        self._received = bytearray()
        self._owed = 0  # answers that nobody has waited for, since a signal came between
        Connection._open.add(sock)

    def ask(self, request: Dict[str, Any]) -> Answer:
        """Sends a request and waits for its answer; Refused, or OSError if the bridge is gone."""
        self.post(request)
        return self.answer()

    def post(self, request: Dict[str, Any]) -> None:
        """Sends a request; answer waits for what it comes to."""
        while self._owed:  # until then the memory is the bridge's
            self._read()
        line = json.dumps(request, allow_nan=False).encode() + b"\n"
        try:
            self._owed += 1
            self._sock.sendall(line)
        except BaseException:  # perhaps half a line has gone
            self.close()
            raise

    def has_answer(self) -> bool:
        """Tells whether answer has not to wait."""
        return self._sock.fileno() < 0 or b"\n" in self._received or bool(select.select([self._sock], [], [], 0)[0])

    def answer(self) -> Answer:
        """Waits for the answer of what was posted."""
        if not self._owed:
            raise ConnectionAbortedError("a signal kept it from being sent")
        answer = self._read()
        if answer.get("ok") is True:
            return answer
        error = answer.get("error") or {}
        raise Refused(error.get("code", "internal"), error.get("detail", ""), error.get("remedy", ""), bool(error.get("fatal")))

    def _read(self) -> Answer:
        while b"\n" not in self._received:
            piece = self._sock.recv(1 << 16)
            if not piece:
                raise ConnectionResetError("the bridge has ended")
            self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        self._owed -= 1
        with contextlib.suppress(ValueError):
            if isinstance(answer := json.loads(line), dict):
                return answer
        raise ConnectionAbortedError(f"what answered is no bridge: {bytes(line[:80])!r}")

    def close(self) -> None:
        """Ends the conversation, by a shutdown, which no other descriptor can hold up."""
        with contextlib.suppress(OSError):  # the other side has gone
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    @classmethod
    def _forked(cls) -> None:
        for sock in list(cls._open):
            if sock.fileno() >= 0:
                os.close(sock.detach())  # where close would wait for what reads it, which is not here


os.register_at_fork(after_in_child=Connection._forked)
