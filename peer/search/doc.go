// Package search finds good settings by training several, each on some members of a flock, and stopping the worse ones
// early: asynchronous successive halving (ASHA; Li et al., 2020). A setting is a trial; a trial is trained up to the
// first rung, a number of steps, by a sub-flock of members, and judged by the median of their figures on held-out data. Of the
// trials at a rung the best one in Reduce goes on to the next, as soon as there are so many: nobody waits for a rung to
// be full. Random and grid search are the case of one rung.
//
// Nobody leads. Every member brings a Report to peer.Node.Gather now and then, and Config.Meet makes of what Gather has
// returned, the same bytes at all, the same Plan at all: results, who trains what, and whose model travels. It is a pure
// function of the reports, without a memory of its own, so one that comes late knows as much as the others, and of
// one that dies only what it trained is lost.
//
// Limits: reports are believed, so search in flocks whose members you trust. There are at most MaxTrials trials; a model that
// travels has at most MaxModel bytes.
//
// Begin with Space for settings, and with Config.Meet for who trains them.
package search
