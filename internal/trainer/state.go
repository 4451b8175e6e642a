package trainer

import (
	"maps"

	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// makeRoom gives s vectors with the names and lengths of those in like; it does not read
// their values.
func makeRoom(s *optim.State, like optim.State) {
	if s.Vectors == nil {
		s.Vectors = make(map[string]tensor.Vector, len(like.Vectors))
	}
	maps.DeleteFunc(s.Vectors, func(name string, _ tensor.Vector) bool { return like.Vectors[name] == nil })
	for name, from := range like.Vectors {
		if len(s.Vectors[name]) != len(from) {
			s.Vectors[name] = make(tensor.Vector, len(from))
		}
	}
}
