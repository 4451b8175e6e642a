package settings

import (
	"errors"

	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// remedies are the flags to change where the library gives up, which knows none.
var remedies = []struct {
	cause  error
	remedy string
}{
	{seam.ErrLayout, "give --model and --dataset as they are given there"},
	{seam.ErrUnknownRun, "give --run as it is given there; if it is, the peer there is only starting, or leaving"},
	{seam.ErrNotAdmitted, "give --run-key as it is given there, and have this peer's id added to the list there, and the one there to that of --allow here"},
	{seam.ErrUnknownProtocol, "install the same release on both machines"},
	{p2pnet.ErrAddress, "correct --join"},
}

// Remedy tells what to change after an error of the library, empty where no flag helps.
func Remedy(err error) string {
	for _, r := range remedies {
		if errors.Is(err, r.cause) {
			return r.remedy
		}
	}
	return ""
}
