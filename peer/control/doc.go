// Package control is how a run is ruled from outside: what an operator says (Command), and
// what members tell each other and whoever watches of themselves (Digest). An Operator
// needs a transport and no peer; peers obey it if their settings name its id.
//
// An operator's messages are kept by the members, passed on by them, and sent to whoever
// joins before it takes a step: docs/design/017.
package control
