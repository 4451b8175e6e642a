//go:build !amd64 || purego

package kernel

func assembledCodecs() []codecVariant { return nil }
