package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/seed-97356399/murmuration/peer"
)

// sequenceSuffix is appended to the key's name for the file that remembers the number
// of the operator's last message: a member that was cut off may not know of it.
const sequenceSuffix = ".sequence"

// lastSequence is the number of the last message that was sent with a key, as far as is
// known: a file that is missing or damaged only means that members are believed.
func lastSequence(key string) uint64 {
	text, err := os.ReadFile(key + sequenceSuffix)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// keepSequence remembers the highest number that counts now.
func keepSequence(key string, known uint64, standing []peer.Command) error {
	highest := known
	for _, c := range standing {
		highest = max(highest, c.Sequence)
	}
	if highest == known {
		return nil
	}
	if err := os.WriteFile(key+sequenceSuffix, strconv.AppendUint(nil, highest, 10), keyMode); err != nil {
		return fmt.Errorf("the member has taken it, but the number of the last message cannot be kept: %w", err)
	}
	return nil
}
