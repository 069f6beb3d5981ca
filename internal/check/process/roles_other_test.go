//go:build !linux

package process_test

func viewRole(string, string) {}
