package checkpoint

import (
	"encoding/json"
	"fmt"

	"github.com/seed-97356399/murmuration/peer/optim"
)

// InWords is the course of a learning rate, a optim.Schedule as JSON, as a person would say
// it, and any other text as it is, quoted if a terminal had better not get it.
func InWords(course string) string {
	var s optim.Schedule
	shapes := map[optim.Shape]string{optim.Cosine: "cosine", optim.Constant: "constant", optim.Stepped: "step"} // as of --schedule
	if err := json.Unmarshal([]byte(course), &s); err != nil || shapes[s.Shape] == "" {
		return quoted(course)
	}
	return fmt.Sprintf("%s, rate %g, warm-up %g", shapes[s.Shape], s.Rate, s.Warmup)
}
