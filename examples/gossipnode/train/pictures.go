package train

import (
	"fmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// maxNamedSkips bounds the number of unusable pictures that are named.
const maxNamedSkips = 10

// pictures counts what was reported about a peer's pictures. Most is known before the
// start, when they are indexed, and the rest at the end.
type pictures struct {
	named, more int // unusable pictures: reported by name, and only by number
	resized     int // pictures that were resized
}

// name reports unusable pictures by name, with the reason, up to the bound. Total is the number of all of them.
func (p *pictures) name(t *training) (total int) {
	total, named := t.work.Data.Skipped(p.named)
	for _, damaged := range named[:min(len(named), maxNamedSkips-p.named)] {
		t.say("left out: " + damaged.Error())
		p.named++
	}
	return total
}

// tell reports everything that was not reported yet.
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
