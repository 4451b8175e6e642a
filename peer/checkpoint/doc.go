// Package checkpoint stores the state of a peer in a folder and restores it. A Folder has numbered safetensors files,
// of which the newest valid one is used. A Lock keeps other processes from the folder. A Keeper saves during
// training. Open reads any single file.
//
// Whatever happens during a write, such as a full disk or a power cut, the earlier files stay intact: see
// docs/design/021-checkpoints.md. A file that cannot be used is skipped with the reason, and never removed.
//
// Limits: a file is read whole, so it takes as much memory as the model and the optimizer's state. If the file system
// has no locks, two processes may use one folder.
//
// Read folder.go, then file.go for the contents of a file.
package checkpoint
