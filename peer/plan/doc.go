// Package plan decides which member does which task and when: fits, epochs of shards and evaluations, with deadlines,
// over members of unequal speed, memory and link. Make takes a State and returns a Plan of small
// w1·(longest time) - w2·accuracy - w3·resource (Cheng, Distributed Machine Learning and "data-preprocessing" System):
// accuracy is what the measured curves of the tasks promise, resource the busy share of members.
//
// No member plans for the others. Each brings a State to Node.Gather of package peer, reads what came back with Merge,
// and calls Make: the same bytes give the same plan. So there is no clock and no chance here, no map is gone through,
// products are rounded before they are added, so that no compiler fuses the two, and what decides is rounded to ten
// digits. Beyond reach is math.Pow, whose last bit may differ between processors.
//
// Limits: a heuristic, to be judged by Plan.Bound; a member does one thing at a time; members believe what others bring,
// as in sums. Read state.go, then make.go for the search, seat.go for one try, and improve.go for small schedules.
package plan
