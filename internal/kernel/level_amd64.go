//go:build !purego

package kernel

import "golang.org/x/sys/cpu"

// cpuLevel is a set of instructions that kernels are written for.
type cpuLevel uint8

const (
	levelGo cpuLevel = iota // none beyond what Go's compiler assumes
	levelAVX2
	levelAVX512
)

// level is the best that this CPU and its operating system have.
var level = bestLevel(cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C &&
	cpu.X86.HasSSE42 && cpu.X86.HasPCLMULQDQ,
	cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL)

// bestLevel takes whether all features that a level's kernels use are there.
func bestLevel(avx2, avx512 bool) cpuLevel {
	switch {
	case !avx2:
		return levelGo // the kernels of AVX-512 use AVX2 for single values
	case !avx512:
		return levelAVX2
	default:
		return levelAVX512
	}
}

// Instructions names the instructions in use: "avx512", "avx2" or "go".
func Instructions() string {
	switch level {
	case levelAVX512:
		return "avx512"
	case levelAVX2:
		return "avx2"
	default:
		return "go"
	}
}

// convolveRun is how many pixels or taps a kernel for so many channels works on at
// once.
func convolveRun(channels int) int {
	if level == levelAVX512 || channels == 8 {
		return longestRun
	}
	return longestRun / 2
}
