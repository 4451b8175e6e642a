package result

import (
	"fmt"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// Cross is the accuracy of every member's model on every member's held-out data.
type Cross struct {
	// Peers are the names of the members.
	Peers []string `json:"peers"`
	// Accuracy has a row for each member's data and a column for each member's model; null if a member could not use a model.
	Accuracy [][]cli.Number `json:"accuracy"`
}

// maxCrossed bounds the members whose table is printed for people.
const maxCrossed = 16

// String is the table; nil has none.
func (c *Cross) String() string {
	if c == nil || len(c.Peers) > maxCrossed {
		return ""
	}
	const width = 10
	var text strings.Builder
	text.WriteString("Accuracy in percent, of the models (columns) on the held-out data (rows) of:\n" + strings.Repeat(" ", width))
	for _, name := range c.Peers {
		fmt.Fprintf(&text, " %*s", width, cli.Cut(name, width))
	}
	for i, row := range c.Accuracy {
		fmt.Fprintf(&text, "\n%-*s", width, cli.Cut(c.Peers[i], width))
		for _, a := range row {
			fmt.Fprintf(&text, " %*.2f", width, 100*float64(a))
		}
	}
	return text.String() + "\n"
}
