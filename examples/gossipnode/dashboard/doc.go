// Package dashboard serves a page that shows a whole run from one of its peers: the ring, exchanges, curves, a table
// of the members, events. It lets the operator pause and resume the run.
//
// A Board collects the content of the page: it looks at its peer once a second, the peer's hooks report exchanges,
// and the digests of other peers report their progress. A Server serves the board with the files of folder page, and
// sends changes as server-sent events. The page loads nothing from elsewhere.
//
// Limits: without a host in its address the page is for this machine only. Other machines need a token, which crosses
// the network unencrypted. There are at most maxWatchers viewers at a time, maxMembers shown members, and maxPoints
// points in a curve.
//
// Read board.go for the content, server.go for the server, guard.go for access; page/app.js is the start of the page.
package dashboard
