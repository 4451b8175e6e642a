package local

import (
	"os"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/control"
)

// TestLocalOperator shows that a local run with a dashboard has an operator as long as
// it runs, whose key only the first peer is given.
func TestLocalOperator(t *testing.T) {
	var s settings.Settings
	if forget, err := drawOperator(&s); err != nil || s.OperatorKey != "" {
		t.Errorf("without a dashboard: %q, %v", s.OperatorKey, err)
	} else {
		forget()
	}
	s.Dashboard = ":0"
	forget, err := drawOperator(&s)
	if err != nil || s.OperatorKey == "" || s.Operator == "" {
		t.Fatalf("%+v, %v", s.OperatorKey, err)
	}
	first, second := s, s
	watchMember(&first, 0)
	watchMember(&second, 1)
	if first.OperatorKey == "" || first.Dashboard == "" || second.OperatorKey != "" || second.Dashboard != "" || second.Operator != s.Operator || second.Digests != settings.BoardDigests {
		t.Errorf("the first has %+v, the second %+v", first.OperatorKey, second.OperatorKey)
	}
	if first.Name != "peer 0" || second.Name != "peer 1" {
		t.Errorf("they are called %q and %q", first.Name, second.Name)
	}
	s.Name = strings.Repeat("n", control.MaxName)
	watchMember(&s, 12)
	if want := s.Name[:control.MaxName-3] + " 12"; s.Name != want || len(want) != control.MaxName {
		t.Errorf("one of a run with a name is called %q", s.Name)
	}
	forget()
	if _, err := os.Stat(s.OperatorKey); !os.IsNotExist(err) {
		t.Errorf("the key stays: %v", err)
	}
}
