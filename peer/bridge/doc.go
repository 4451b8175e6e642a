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
// Serve speaks with one trainer from its hello to its end. What it asks for is made by
// Config.Start, so a service decides which settings a trainer may have. A trainer is of the
// same user as the service, and believed no more than its own copy of the model needs: what is
// wrong with a line, a layout or the memory is refused with a *Refusal, and the peer goes on.
//
// Limits: parameters are float32 in the memory, little-endian. bfloat16 and half precision
// are rounded to when handed over, and the peer keeps what rounding leaves out. A memory
// that can shrink is never mapped, but read and written by system calls.
package bridge
