package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// silent is a transport to addresses of which none answers soon.
type silent struct{ transport.Transport }

func (silent) Self() transport.PeerID { return "self" }

func (silent) Connect(ctx context.Context, address string) (transport.PeerID, error) {
	var last int
	fmt.Sscanf(address, "192.0.2.%d:1", &last)
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(9*time.Second - time.Duration(last)*time.Millisecond): // the last given is the first that ends
		return "", errors.New("nobody")
	}
}

// TestAddressesAreAskedAtOnce: with one after another the last ones would get no time.
func TestAddressesAreAskedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s settings.Settings
		s.Run = "r"
		for i := range joinAtOnce + 1 {
			s.Join = append(s.Join, fmt.Sprintf("192.0.2.%d:1", i))
		}
		began := time.Now()
		found := checkJoin(t.Context(), s, nil, silent{})
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("took %v", took)
		}
		if len(found) != len(s.Join) {
			t.Fatalf("%+v", found)
		}
		for i, d := range found {
			if d.Level != levelFail || !strings.Contains(d.Finding, s.Join[i]+": nobody") {
				t.Errorf("%d: %+v", i, d)
			}
		}
	})
}
