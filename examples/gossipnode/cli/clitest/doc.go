// Package clitest tests commands: in the test's own process, or as processes of the test binary, which acts as the
// program if Variable is set.
//
// A package with a command makes a Program of it with Only, calls Main in TestMain, and uses Try and Command.
// Functions that inspect processes need /proc.
package clitest
