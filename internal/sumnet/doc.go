// Package sumnet carries the messages of package sums over streams: one to each member that
// is sent messages, and one from each that sends some. They stay open between sums.
package sumnet
