// Package topology decides who neighbours whom.
//
// Peers fall into two classes. An active peer starts exchanges, a passive one answers them;
// since only actives wait, no circle of waiting peers can form (AD-PSGD: Lian, Zhang, Zhang
// and Liu, 2018). A [View] is one membership view with a role for every member, and an
// [Overlay] is the fixed set of links that follows from it. Both are pure functions of the
// members: everyone who has the same records computes the same view and the same links, in
// the same order, without any agreement first.
//
// The links give an exponential graph between the classes. Number the actives
// and the passives round a ring; hops of 1, 3, 5, 9, 17, ... places along the
// ring are offsets 0, 1, 2, 4, 8, ... from one class to the other. A peer has
// about 2·log2(n) neighbours, and the models of n peers mix in a number of
// exchanges per peer that hardly grows with n. Other graphs are a [Shape]: a ring, a tree, a star.
//
// Members may say at which site they are ([Place]). Then each site has such a graph of its own, and one member of
// each class exchanges with other sites for all, the delegate, so that few bytes go where links are shared.
//
// # Limits
//
// Nothing here knows a clock, a socket or a source of randomness, and nothing is mutable
// after its constructor returns: all types are safe for concurrent use. A view holds at
// most [MaxMembers] members. The order of members is a hash of identities that anybody can
// compute and search: it spreads honest peers evenly, but is no defence against an attacker
// that makes thousands of identities.
//
// # Where to go next
//
// Package averaging decides when an active peer exchanges, and with which of its
// neighbours; package peer makes members from signed records and publishes the role that a
// view decides.
package topology
