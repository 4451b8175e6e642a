// Package clitest tests commands: in the test's own process, or as processes of the
// test binary, which acts as the program when Variable says so.
//
// A package with a command of its own makes a Program of it with Only, has TestMain
// call Main, and uses Try and Command. Functions that look at processes need /proc.
package clitest
