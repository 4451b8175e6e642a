// Package admit decides who takes part in a run, by a list of identities, a key that all
// share, or both (docs/design/016). A Guard stands before the transport, so that streams,
// packets and topics of the run are those of peers that take part, and before the
// membership; in a hello it asks for a proof of the key, and gives one.
//
// It holds no connection: whoever has one disconnects those of which Watch tells that
// they have been taken off the list.
package admit
