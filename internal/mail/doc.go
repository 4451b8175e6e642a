// Package mail carries one-way messages between members: a stream to each member that is to receive
// messages, with a bounded queue before it, and a stream from each that sends some. The user of the
// package decides what a message is and who may send it, and must tolerate losses. Messages may be
// lost when a stream breaks, or when a partner does not take earlier ones.
package mail
