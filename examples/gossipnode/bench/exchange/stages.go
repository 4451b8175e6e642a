package exchange

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
)

// profiledTime is the time of profiling, in seconds: some hundred samples for a stage with a tenth of the time.
const profiledTime = 4.0

// stageSeconds is the processor time of one exchange in a stage, on each side.
type stageSeconds struct {
	Stage   string  `json:"stage"`
	Active  float64 `json:"active_seconds"`
	Passive float64 `json:"passive_seconds"`
}

// stage is a part of an exchange's work. It has the functions that do it, by the beginnings of their names. A sample
// counts for the first stage that has a function of its stack, from the innermost on: copying in TLS counts for TLS,
// and a system call for the system.
type stage struct {
	name      string
	functions []string
}

const ours = "github.com/seed-97356399/murmuration/"

// stages lists the stages in the order in which a slice passes through them. All other functions count for the
// runtime: scheduling, timers, memory.
func stages() []stage {
	replica := ours + "internal/replica."
	return []stage{
		{"system", []string{"internal/runtime/syscall.", "syscall.", "internal/poll.", "runtime.futex", "runtime.epollwait", "runtime.usleep"}},
		{"encode", []string{replica + "(*InitiatorLane).Code"}},
		{"decode, apply", []string{replica + "(*InitiatorLane).Diff", replica + "(*ResponderLane).Ack"}},
		{"decode, difference, encode", []string{replica + "(*ResponderLane).Code"}},
		{"checksum", []string{"hash/crc32."}},
		{"TLS", []string{"crypto/", ours + "peer/p2pnet/internal/secure."}},
		{"muxer", []string{"github.com/libp2p/go-yamux"}},
		{"conversation", []string{ours + "internal/framed.", ours + "internal/session.", ours + "internal/conversations.", ours + "internal/wire.", ours + "peer"}},
	}
}

const otherStage = "scheduling and the rest"

// profiling is a running processor profile.
type profiling struct{ data bytes.Buffer }

func (p *profiling) begin() error {
	p.data.Reset()
	if err := pprof.StartCPUProfile(&p.data); err != nil {
		return fmt.Errorf("profiling exchanges: %w", err)
	}
	return nil
}

// end ends the profile and returns the processor time by stage, in seconds.
func (p *profiling) end() (map[string]float64, error) {
	pprof.StopCPUProfile()
	taken, err := profile.Parse(&p.data)
	if err != nil {
		return nil, fmt.Errorf("reading the profile: %w", err)
	}
	sums := make(map[string]float64)
	for _, sample := range taken.Sample {
		sums[stageOf(sample)] += float64(sample.Value[len(sample.Value)-1]) / 1e9
	}
	return sums, nil
}

// stageOf is the stage of a stack.
func stageOf(sample *profile.Sample) string {
	for _, location := range sample.Location {
		for _, line := range location.Line {
			for _, s := range stages() {
				if slices.ContainsFunc(s.functions, func(f string) bool { return strings.HasPrefix(line.Function.Name, f) }) {
					return s.name
				}
			}
		}
	}
	return otherStage
}

// profile makes uninterrupted exchanges, and reports the processor time by stage of one exchange on both sides.
func (b *exchangeBench) profile(ctx context.Context) error {
	if !b.settings.stages {
		return nil
	}
	times := int(min(max(profiledTime/measure.Median(b.ours.seconds), minBurst), maxOrderTimes))
	var own profiling
	if _, err := b.other.ask(ctx, doProfile); err != nil {
		return err
	}
	if err := own.begin(); err != nil {
		return err
	}
	if _, _, err := b.measured.exchange(ctx, times); err != nil {
		return err
	}
	active, err := own.end()
	if err != nil {
		return err
	}
	theirs, err := b.other.ask(ctx, doProfiled)
	if err != nil {
		return err
	}
	for _, s := range append(stages(), stage{name: otherStage}) {
		b.stages = append(b.stages, stageSeconds{s.name, active[s.name] / float64(times), theirs.Stages[s.name] / float64(times)})
	}
	return nil
}
