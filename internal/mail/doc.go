// Package mail carries one-way messages between members: a stream to each that has messages to get,
// with a bounded queue before it, and one from each that sends some. What a message is, who may send
// it and what it costs to lose one is its user's. Messages may be lost: with a stream that breaks, or
// because a partner does not take those before.
package mail
