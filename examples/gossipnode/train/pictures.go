package train

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
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
		t.Log.Warn("a picture cannot be used and is left out", zap.Error(damaged))
		p.named++
	}
	return total
}

// tell tells all that is new.
func (p *pictures) tell(t *training) {
	if more := p.name(t) - p.named - p.more; more > 0 {
		t.Log.Warn(fmt.Sprintf("and %d more pictures that cannot be used", more))
		p.more += more
	}
	data := t.work.Data
	norm, resized := data.Measured(), data.Resized()
	if p.resized == resized && (norm == nil || !t.first.IsZero()) {
		return
	}
	p.resized = resized
	shape := data.Shape()
	text := fmt.Sprintf("pictures are %d×%d pixels", shape.Width, shape.Height)
	if resized > 0 {
		text += fmt.Sprintf("; %s resized and cropped to that", cli.Plural(uint64(resized), "picture"))
	}
	if norm != nil {
		text += fmt.Sprintf("; a peer with other files takes part with --size %dx%d --normalize %s", shape.Width, shape.Height, dataset.FormatNorm(norm))
	}
	t.say(text)
}
