// Package stages decides how micro-batches travel through the stages of a model that is cut across members (nn.Stages),
// where each stage has several equal members: which member of the next stage a micro-batch goes to, what a member
// computes next, when it makes a step, and what becomes of micro-batches whose member has died.
//
// A Source sends micro-batches of its rows to members of the first stage, and has each back as a word that it is done. A
// Holder has one stage: it computes micro-batches forward, has the next stage go on with them, and computes them back when
// their errors have come. Both choose by a Router, which sends to the member that is expected to be free first (SWARM:
// Ryabinin et al., 2023): no chain is fixed, and a slow member gets less.
//
// The machines are pure: they see names and times, no values; what is to be done comes back as Actions. Every queue is
// bounded. Forward and back alternate (1F1B: Narayanan et al., 2019), and parameters are those of the forward pass on
// the way back, of which two versions are kept at most (PipeDream-2BW: Narayanan et al., 2021).
package stages
