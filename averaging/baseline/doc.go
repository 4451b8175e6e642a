// Package baseline holds the rivals of AD-PSGD as machines behind the same
// averaging.Machine: pure, deterministic, driven by events, carried out by the same
// replica over the same transports.
//
//   - AllReduce: synchronous SGD, each step of the sum of all gradients; or, as DiLoCo, of what
//     many local steps came to.
//   - ParamServer: one member serves the parameters; a Gate says when it updates and who
//     may go on: BSP, ASP, SSP, DSSP.
//   - DPSGD: neighbours average their models in lock-step, X·W − γ·G(X).
//   - Alone: the floor, a peer that shares nothing.
//
// Each type's comment says what it does when a peer dies, is slow, or comes late. No
// machine waits for a peer longer than Config.Deadline before it goes on or reports that it
// cannot. None depends on a single message: a waiting peer retransmits. With AllReduce and
// ParamServer all live peers end with one model, byte for byte.
//
// # The coordinator
//
// In AllReduce one member gives out places; with a parameter server one member serves. It is
// the first member of the view that can be dialled, or Config.Server. When it dies, the
// member with the newest parameters takes its place, as ParamHub's parameter node does, and
// people are told (Replaced). A trainer's step fails with averaging.NoCoordinator only if
// the named server never comes, if this peer alone has lost the coordinator, or if an
// AllReduce's coordinator cannot send its own numbers.
//
// # ParamHub
//
// The roles of that paper correspond to the following. Its task scheduler distributes the
// data round-robin: here each peer holds its own data, and the batch is divided by speed
// (Shares). Resource monitoring is the server's Board: which worker has pushed what, when,
// and how fast. The server manager's merge is Sum, to which gradients are added as they
// arrive, weighted by their samples. The controller that asks for more training is the
// Gate. Its update of the model is the Update action and the parameters sent back.
//
// # Limits
//
// A machine holds a few numbers for each member of the view. It trusts the members'
// messages and the runtime: a member that lies can stop the algorithm, which is one of the
// reasons for AD-PSGD. What a machine does, event by event, is best read in
// testdata/transcripts.
package baseline
