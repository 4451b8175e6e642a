package wire

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/WIRE.md gives other implementations the numbers that this package uses.
func TestDocumentStatesTheNumbers(t *testing.T) {
	text, err := os.ReadFile("../../docs/WIRE.md")
	if err != nil {
		t.Fatal(err)
	}
	wants := []string{
		fmt.Sprintf("wire version %d", Version),
		fmt.Sprintf("A slice has at most %d values", MaxSliceLen),
		fmt.Sprintf("no payload exceeds %d bytes", MaxPayload),
		fmt.Sprintf("none of these exceeds %d bytes", MaxHandshake),
		fmt.Sprintf("1 to %d bytes of UTF-8", MaxRunName),
		fmt.Sprintf("0 to %d bytes of UTF-8", MaxDetail),
		fmt.Sprintf("1 to %d codec numbers", MaxCodecs),
		fmt.Sprintf("streams wanted, 1 to %d", MaxLanes),
		fmt.Sprintf("1 to %d, below the *lanes* of ACCEPT", MaxLanes-1),
		fmt.Sprintf("times *lanes* is 1 to %d", MaxInDoubt),
		fmt.Sprintf("1 to %d slice indices", MaxInDoubt),
		fmt.Sprintf("of the record, 1 to %d |", MaxSigned),
		fmt.Sprintf("1 to %d hashes", MaxWanted),
		fmt.Sprintf("1 to %d slices", MaxWanted),
		fmt.Sprintf("1 to %d bytes, the text of the sender's id", MaxPeerName),
	}
	for _, typ := range knownTypes() {
		most, _ := typ.limit()
		wants = append(wants, fmt.Sprintf("| %d | %v | %d |", typ, typ, most))
	}
	for r := ReasonBusy; r <= ReasonRound; r++ {
		permanent := "no"
		if r.Permanent() {
			permanent = "yes"
		}
		wants = append(wants, fmt.Sprintf("| %d | %v | %s |", r, r, permanent))
	}
	for _, want := range wants {
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/WIRE.md does not say %q", want)
		}
	}
	for _, v := range vectors() {
		if !strings.Contains(string(text), "`"+v.name+"`") {
			t.Errorf("docs/WIRE.md does not mention the vector %s", v.name)
		}
	}
}
