// Package dashboard serves a page that shows a whole run, from one of its peers: the
// ring, who exchanges with whom, curves, a table of the members, what happened; and lets
// the operator pause and resume it.
//
// A Board gathers what the page shows: it looks at its peer once a second, is told of
// exchanges by the peer's hooks, and reads how the others get on in their digests. A
// Server serves it, with the files of folder page, and passes on what changes as
// server-sent events. Nothing is fetched from elsewhere.
//
// Limits: without a host in its address the page is for this machine only, and others
// need a token, which crosses the network in the clear; maxWatchers browsers watch at
// once, maxMembers members are shown, and curves have maxPoints points.
//
// Read board.go for what is gathered, server.go for what is served, guard.go for who
// may enter; page/app.js is where the page begins.
package dashboard
