package swim

import "slices"

// maxOver bounds the lives of a peer that are remembered to have ended.
const maxOver = 4

// end notes which lives are over once one announces something.
func (e *entry) end(announcing uint64) {
	ended := e.last.life
	switch {
	case e.meta != nil && ended != announcing:
	case e.waiting && e.onlooks != announcing:
		ended = e.onlooks
	default:
		return
	}
	if e.over = append(e.over, ended); len(e.over) > maxOver {
		e.over = e.over[1:]
	}
}

// outlived tells whether the peer has announced something since a life of it looked on.
func (e *entry) outlived(life uint64) bool {
	return e.meta != nil && e.last.life == life || slices.Contains(e.over, life)
}
