package topology

import (
	"fmt"
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// MaxSite bounds the name of a site, in bytes.
const MaxSite = 24

// Place is where in the network a member is, as far as it says so.
type Place struct {
	// Site names the network that the member shares with others, such as an office or a data centre: within
	// it links are fast. Members that name none are at one site too, that without a name.
	Site string
	// Uplink is about what the member's link to other sites carries.
	Uplink Uplink
}

// Validate tells what is wrong with a place.
func (p Place) Validate() error {
	printable := utf8.ValidString(p.Site)
	for _, r := range p.Site {
		printable = printable && unicode.IsPrint(r) && r != utf8.RuneError
	}
	if len(p.Site) > MaxSite || !printable {
		return fmt.Errorf("site %q: want printable text of at most %d bytes", p.Site, MaxSite)
	}
	if p.Uplink > maxUplink {
		return fmt.Errorf("an uplink of class %d: want at most %d", p.Uplink, maxUplink)
	}
	return nil
}

// Uplink is a rate to within a factor of two, so that a record that tells it need not change with each
// measurement: n stands for 2^(n-1) to 2^n kbit/s, 0 for a rate that is not known.
type Uplink uint8

// maxUplink is the class of the fastest uplink, which is far above any there is.
const maxUplink Uplink = 40

const bytesPerKbit = 1000 / 8

// UplinkOf is the class of a rate in bytes a second. A rate of 0 is not known.
func UplinkOf(bytesPerSecond float64) Uplink {
	if !(bytesPerSecond > 0) {
		return 0
	}
	kbit := min(max(bytesPerSecond/bytesPerKbit, 1), 1<<(maxUplink-1))
	return Uplink(bits.Len64(uint64(kbit)))
}

// BytesPerSecond is the least rate of the class; 0 if it is not known.
func (u Uplink) BytesPerSecond() float64 {
	if u == 0 {
		return 0
	}
	return bytesPerKbit * float64(uint64(1)<<(min(u, maxUplink)-1))
}
