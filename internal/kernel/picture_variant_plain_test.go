//go:build !amd64 || purego

package kernel

func assembledPictures() []pictureVariant { return nil }
