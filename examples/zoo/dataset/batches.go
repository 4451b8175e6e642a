package dataset

import "errors"

// Batches is an endless supply of batches: a Sampler draws them from memory, a
// Stream reads them from files. Not safe for concurrent use, but for Close.
type Batches interface {
	// Next fills the batch. It may take the batch's slices and give it others in
	// their place: whoever wants to keep numbers copies them.
	Next(b *Batch) error
	// Close ends what stands behind the supply and waits for it; a Next that waits
	// returns ErrClosed. It may be called again.
	Close() error
}

// ErrClosed is what the Next of a Stream returns after Close.
var ErrClosed = errors.New("dataset: these batches are closed")
