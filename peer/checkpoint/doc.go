// Package checkpoint keeps the state of a peer in a folder and takes it up again. A
// Folder holds numbered safetensors files, of which the newest sound one counts; a Lock
// keeps other processes from it; a Keeper saves beside training. Open reads any one for whoever
// looks.
//
// Whatever happens while one is written, a full disk and a power cut included, those
// before it stay whole: docs/design/021-checkpoints.md says how. What cannot be used is
// refused with why, passed over and never removed.
//
// Limits: a file is read whole, so that it takes memory as the model and the optimizer's
// state do; where the file system has no locks, two processes are not kept apart.
//
// Read folder.go, then file.go for what is in one.
package checkpoint
