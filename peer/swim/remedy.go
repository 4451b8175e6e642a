package swim

import "strings"

// remedies tell what to do about what memberlist complains of, by what its lines hold.
// The first that fits counts.
var remedies = []struct{ sign, remedy string }{
	{"Refuting", "nothing: this peer was taken for dead and says otherwise; if it repeats, this machine or its network is overloaded"},
	{"timeout", "if it repeats: see whether the member's address and port can be reached (gossipnode doctor)"},
	{"Failed to send", "if it repeats: see whether the member's address and port can be reached (gossipnode doctor)"},
	{"Push/Pull", "nothing, if it happens once: the next member is asked; if it repeats, see whether members can be reached (gossipnode doctor)"},
	{"", "nothing, if it happens once: the protocol goes on; if it repeats, see that all peers have the same release"},
}

// remedyOf is what to do about a line.
func remedyOf(line string) string {
	for _, r := range remedies {
		if strings.Contains(line, r.sign) {
			return r.remedy
		}
	}
	return ""
}
