package archtest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer"
)

// leaves are the settings of a struct: its fields, those of structs of this module in their place.
func leaves(of reflect.Type, name string) (all []string) {
	if of.Kind() != reflect.Struct || !strings.HasPrefix(of.PkgPath(), module) {
		return []string{name}
	}
	for i := range of.NumField() {
		if field := of.Field(i); field.IsExported() {
			all = append(all, leaves(field.Type, name+"."+field.Name)...)
		}
	}
	if len(all) == 0 {
		return []string{name} // an opaque value
	}
	return all
}

// TestConfigFitsAHead: who embeds a peer reads all of these once. A setting is a promise: it is there if
// somebody has reason to change it, and can know what to.
func TestConfigFitsAHead(t *testing.T) {
	const most = 69 // Sums.Topology is of issue 37; Training.Stage is of issue 38; Exchange.Topology, Exchange.Pace.Burst, Exchange.Pace.Partial Network.Uplink and Network.Site are of issue 37; Control.Changed is of issue 36; five are Work.Until's, of issue 36: who evaluates, and the four aims that users name; Sums.Masked is of issue 35
	all := leaves(reflect.TypeFor[peer.Config](), "Config")
	if len(all) > most {
		t.Errorf("peer.Config has %d settings, at most %d:\n%s", len(all), most, strings.Join(all, "\n"))
	}
}

// TestObjectsFitAHead: what a node and a trainer can be asked for.
func TestObjectsFitAHead(t *testing.T) {
	const most = 15 // Raise, by which members tell of alarms, is of issue 36
	for _, of := range []reflect.Type{reflect.TypeFor[*peer.Node](), reflect.TypeFor[*peer.Trainer]()} {
		if n := of.NumMethod(); n > most {
			t.Errorf("%s has %d methods, at most %d", of, n, most)
		}
	}
}
