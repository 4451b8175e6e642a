package archtest

import (
	"fmt"
	"go/ast"
	"slices"
)

// noWall is why peers do not read the time of day: their clocks may be an hour apart,
// or be set while they run. A time.Time from time.Now carries a monotonic reading,
// which Sub, Since, Until, Add, After and Before use as long as none of these has
// taken it away or told the time of day to somebody else.
const noWall = "peers' clocks may be an hour apart: a decision of the protocol, and what is sent, rests on durations on one machine only"

// wallNames are names of package time, and of the methods of its Time, that read the
// time of day.
var (
	wallFunctions = []string{"Unix", "UnixMilli", "UnixMicro", "Date", "Parse", "ParseInLocation"}
	wallMethods   = []string{
		"Unix", "UnixMilli", "UnixMicro", "UnixNano", "UTC", "Local", "AddDate", "GobEncode", "Clock", "ISOWeek", "Weekday", "YearDay",
	}
)

// checkWall finds uses of the time of day in the runtime and its adapters; below
// them there is no clock at all, and the test harness is no part of the protocol.
func checkWall(s *source) []string {
	if s.folder == "peer/peertest" || !within(s.folder, "peer") {
		return nil
	}
	clock := ""
	for _, i := range s.imports() {
		if i.path == "time" {
			clock = i.local
		}
	}
	if clock == "" {
		return nil
	}
	var found []string
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, plain := selector.X.(*ast.Ident)
		function := plain && pkg.Name == clock
		name := selector.Sel.Name
		if function && slices.Contains(wallFunctions, name) || !function && slices.Contains(wallMethods, name) {
			found = append(found, fmt.Sprintf("%s uses the time of day (%s): %s", s.at(selector.Pos()), name, noWall))
		}
		return true
	})
	return found
}
