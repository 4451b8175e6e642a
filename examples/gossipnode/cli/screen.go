package cli

import (
	"strings"
	"unicode/utf8"
)

// Cut shortens a line to a width: one that wraps would spoil the redrawing.
func Cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width || width < 1 {
		return line
	}
	return string([]rune(line)[:width])
}

// Printable drops control characters: what a peer logs must not steer the
// terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}
