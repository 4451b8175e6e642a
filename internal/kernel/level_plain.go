//go:build !amd64 || purego

package kernel

// Instructions names the instructions in use: "go", what its compiler makes of
// the plain loops.
func Instructions() string { return "go" }

func convolveRun(int) int { return longestRun }
