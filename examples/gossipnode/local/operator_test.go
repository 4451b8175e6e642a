package local

import (
	"os"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
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
	forget()
	if _, err := os.Stat(s.OperatorKey); !os.IsNotExist(err) {
		t.Errorf("the key stays: %v", err)
	}
}
