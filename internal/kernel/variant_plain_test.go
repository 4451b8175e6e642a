//go:build !amd64 || purego

package kernel

func assembled() []variant { return nil }
