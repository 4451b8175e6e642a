// Package bridge lets a trainer in another process of this machine take part in a run: one
// written with PyTorch, say, or in any language that has a socket or a pipe, JSON and files.
// The control is lines of JSON; the values are in memory that both processes share. docs/BRIDGE.md
// is the whole protocol, and examples/python a client.
//
// There are three copies of a model. P, in the shared memory, is the trainer's, which its
// optimizer works on. R, the replica of the *peer.Peer, is what the other peers see. B is what
// P was when it was last handed over. A commit adds P − B to R and overwrites both with
// R: see peer.Peer.Trade. What was committed is in the sum of the peers' models exactly once;
// what the trainer has not committed is lost with it, and nothing else.
//
// Serve speaks with one trainer from its hello to its end. Config.Start makes the peer that
// the trainer asks for, so a service decides which settings a trainer may have. A trainer runs
// as the same user as the service, and is trusted with its own copy of the model only: a
// faulty line, layout or memory is refused with a *Refusal, and the peer goes on.
//
// Limits: parameters are float32 in the memory, little-endian. For a trainer with bfloat16 or
// half precision, values are rounded when they are handed over, and the peer keeps the rounding
// error. A file that can shrink is never mapped; system calls read and write it.
package bridge
