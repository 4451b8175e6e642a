//go:build !unix

package decoded

import "io/fs"

// private is always true: the access control lists of a user's folders are trusted on this system.
func private(fs.FileInfo) bool { return true }

// inode is not known on this system.
func inode(string) string { return "" }
