// Package handout decides who gets which rows of a holder: the order of an epoch, the shares of the
// takers, and what became of each run of rows. It sees numbers of rows, never their bytes, and is pure:
// time and randomness are arguments.
package handout
