// Package history keeps how a run went in a file, and draws it: the flag --history and the command plot.
package history

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// Line is a moment of one peer. Loss is that of the last steps, Accuracy on held-out data, Distance estimated from the last exchanges: null
// if not known. Bytes are those sent.
type Line struct {
	Peer     string     `json:"peer"`
	Seconds  float64    `json:"seconds"`
	Step     uint64     `json:"step"`
	Loss     cli.Number `json:"loss"`
	Accuracy cli.Number `json:"accuracy"`
	Distance cli.Number `json:"distance"`
	Bytes    uint64     `json:"bytes"`
	Members  int        `json:"members"`
	Event
}

// Event is what happened at the moment of a line, with --follow: Rows of a file have come, or a Training is over, which has
// seen so many new Rows, of these Files.
type Event struct {
	Files    string `json:"files,omitempty"`
	Rows     int    `json:"rows,omitempty"`
	Training int    `json:"training,omitempty"`
}

// Encoded is the line as it stands in the file.
func (l Line) Encoded() []byte {
	text, _ := json.Marshal(l) // cannot fail: cli.Number writes what is not finite as null
	return append(text, '\n')
}

// Bounds of a file that is read.
const (
	maxLines  = 1 << 20
	maxLength = 4096 // bytes of a line
	maxPeers  = 64   // whose curves are drawn
)

// Read reads the lines of a file, in the order of the peers' names. Lines that cannot be read, such as a last one that a full
// disk has cut, are counted and left out.
func Read(path string) (peers [][]Line, spoilt int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	return read(file)
}

func read(from io.Reader) (peers [][]Line, spoilt int, err error) {
	places, lines := map[string]int{}, bufio.NewReaderSize(from, maxLength)
	for n := 0; ; n++ {
		text, long, err := lines.ReadLine()
		for more := long; more; { // such as the zeros that a power cut has left
			_, more, _ = lines.ReadLine()
		}
		var l Line
		switch {
		case err == io.EOF:
			slices.SortFunc(peers, func(a, b []Line) int { return cmp.Compare(a[0].Peer, b[0].Peer) })
			return peers, spoilt, nil
		case err != nil:
			return nil, 0, err
		case n == maxLines:
			return nil, 0, fmt.Errorf("more than %d lines", maxLines)
		case long || json.Unmarshal(text, &l) != nil || l.Peer == "":
			spoilt++
			continue
		}
		at, known := places[l.Peer]
		if !known {
			if at = len(peers); at == maxPeers {
				return nil, 0, fmt.Errorf("more than %d peers", maxPeers)
			}
			places[l.Peer], peers = at, append(peers, nil)
		}
		peers[at] = append(peers[at], l)
	}
}
