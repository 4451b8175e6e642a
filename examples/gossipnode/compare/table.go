package compare

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// table describes a race in words. It compares times with those of the first race, in steps if the length of steps
// differs.
func table(r race, first race) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s: %s\n", r.World, r.about)
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	compared := first.World != r.World
	head := "\tstrategy\ts/epoch\t"
	if compared {
		head += "× " + first.World + "\t"
	}
	if r.staged() {
		head += "busy, %\t"
	}
	tail := ""
	if r.sited() {
		tail = "MB across\t"
	}
	fmt.Fprintln(w, head+"target, s\taccuracy, %\tleast, %\tMB/peer\twaiting, %\t"+tail)
	for i, e := range r.Results {
		fmt.Fprintf(w, "\t%s\t%.3f\t", e.Name, e.SecondsPerEpoch)
		if compared {
			of := first.Results[i]
			fmt.Fprintf(w, "%.2f\t", e.SecondsPerEpoch/of.SecondsPerEpoch*of.StepSeconds/e.StepSeconds)
		}
		if r.staged() {
			busy := "" // of the model that is whole, all are but when they wait
			for _, s := range e.Stages {
				busy += fmt.Sprintf("%.0f ", 100*s.Busy)
			}
			fmt.Fprintf(w, "%s\t", strings.TrimSpace(busy))
		}
		target := "never"
		if e.TargetSeconds != nil {
			target = fmt.Sprintf("%.2f", *e.TargetSeconds)
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.1f\t", target, 100*e.TestAccuracy.Mean, 100*e.TestAccuracy.Min,
			float64(e.BytesSent)/1e6/float64(e.Peers), 100*e.WaitedSeconds.Mean/e.Seconds)
		if tail != "" {
			fmt.Fprintf(w, "%.2f\t", float64(e.BytesAcross)/1e6)
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // a strings.Builder never fails
	return text.String()
}
