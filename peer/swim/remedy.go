package swim

import "strings"

// complaint is what a line of memberlist's is about: a message that is the same for all
// lines of its kind, by which they are limited, and what to do about it.
type complaint struct{ sign, message, remedy string }

// complaints are those of memberlist, by what its lines hold. The first that fits counts.
var complaints = []complaint{
	{"Refuting", "this peer was taken for dead, and says otherwise", "nothing; if it repeats, this machine or its network is overloaded"},
	{"queue full", "news of members come faster than they are read", "nothing, if this process stood still before; if it repeats, this machine is overloaded"},
	{"timeout", "a member does not answer in time", "if it repeats: see whether the member's address and port can be reached (gossipnode doctor)"},
	{"Failed to send", "a member could not be sent news", "if it repeats: see whether the member's address and port can be reached (gossipnode doctor)"},
	{"Push/Pull", "memberships could not be compared", "nothing, if it happens once: the next member is asked; if it repeats, see whether members can be reached (gossipnode doctor)"},
	{"", "memberlist complains", "nothing, if it happens once: the protocol goes on; if it repeats, see that all peers have the same release"},
}

func complaintOf(line string) complaint {
	for _, c := range complaints {
		if strings.Contains(line, c.sign) {
			return c
		}
	}
	return complaint{}
}
