package train

import (
	"fmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// maxNamedSkips bounds how many pictures that cannot be used are named.
const maxNamedSkips = 10

// pictures is what has been told of the pictures that a peer learns from: most is known
// when they have been looked at before the start, the rest at the end.
type pictures struct {
	named, more int // that cannot be used: told by name, and those beyond the bound
	resized     int
}

// name names pictures that cannot be used, with the reason, up to the bound.
func (p *pictures) name(t *training) (total int) {
	total, named := t.work.Data.Skipped(p.named)
	for _, damaged := range named[:min(len(named), maxNamedSkips-p.named)] {
		t.say("left out: " + damaged.Error())
		p.named++
	}
	return total
}

// tell tells all that is new.
func (p *pictures) tell(t *training) {
	if more := p.name(t) - p.named - p.more; more > 0 {
		t.say(fmt.Sprintf("left out: %d more pictures that cannot be used", more))
		p.more += more
	}
	if resized := t.work.Data.Resized(); resized > p.resized {
		p.resized = resized
		shape := t.work.Data.Shape()
		t.say(fmt.Sprintf("%s cropped and resized to %d×%d pixels", cli.Plural(uint64(resized), "picture"), shape.Width, shape.Height))
	}
}
