//go:build !amd64 || purego

package kernel

func assembledRows() []rowVariant { return nil }
