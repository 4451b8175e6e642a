package checkpoint

import (
	"encoding/json"
	"fmt"

	"github.com/seed-97356399/murmuration/peer"
)

// InWords is the course of a learning rate, a peer.Schedule as JSON, as a person would say
// it, and any other text as it is, quoted if a terminal had better not get it.
func InWords(course string) string {
	var s peer.Schedule
	shapes := map[peer.Shape]string{peer.Cosine: "cosine", peer.Constant: "constant", peer.Stepped: "step"} // as of --schedule
	if err := json.Unmarshal([]byte(course), &s); err != nil || shapes[s.Shape] == "" {
		return quoted(course)
	}
	return fmt.Sprintf("%s, rate %g, warm-up %g", shapes[s.Shape], s.Rate, s.Warmup)
}
