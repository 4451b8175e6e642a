// Package baseline holds the rivals of AD-PSGD as machines behind the same
// averaging.Machine: pure, deterministic, driven by events, carried out by the same
// replica over the same transports.
//
//   - AllReduce: synchronous SGD, each step of the sum of all gradients.
//   - ParamServer: one member serves the parameters; a Gate says when it updates and who
//     may go on: BSP, ASP, SSP, DSSP.
//   - DPSGD: neighbours in a ring average their models in lock-step.
//   - Alone: the floor, a peer that shares nothing.
//
// Each type's comment says what it does when a peer dies, is slow, or comes late. None
// ever waits for a peer longer than Config.Deadline without going on or saying that it
// cannot, and none needs a word to arrive: who waits speaks again. With AllReduce and
// ParamServer all who live end with one model, byte for byte.
//
// # The coordinator
//
// AllReduce has a member that gives places, the parameter server one that serves. It is the
// first of the view that can be dialled, or Config.Server, and stays that for the whole run.
// When it dies the run halts: every trainer's step fails with averaging.NoCoordinator. So do
// the systems that these machines stand for, which begin again from a checkpoint; to go on
// is what AD-PSGD is for.
//
// # ParamHub
//
// The roles of that paper are played as follows. Its task scheduler deals the data out
// round-robin: here each peer holds its own data, and what is dealt out in turn are the
// parts of the batch, by speed (Shares). Resource monitoring is the server's
// Board: who has pushed what, when, how fast. The server manager's merge is Sum, in which
// the gradients are added as they arrive, weighted by their samples. The controller that
// asks for more training is the Gate. Its update of the model is the Update action, and
// the parameters that go back.
//
// # Limits
//
// A machine holds a few numbers for each member of the view. It trusts what members tell
// it, as it does the runtime: a member that lies can stop the algorithm, which is one of
// the reasons for AD-PSGD. What a machine does, event by event, is best read in
// testdata/transcripts.
package baseline
