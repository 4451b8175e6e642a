package peertest

// Ends is Recording.ends.
var Ends = (*Recording).ends
