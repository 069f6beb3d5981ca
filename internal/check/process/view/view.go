// Package view makes views of the file system in which some files and folders are replaced.
// A view is a mount namespace of Linux. It is made once, and each process that is started in
// it costs only one more system call.
//
//	New ──▶ View ──Enter, on the thread that starts a process──▶ the process sees the view
//
// A user who is not root needs a user namespace to make views. A process cannot enter a user
// namespace once it has several threads, as every Go program has. Therefore, the program that
// makes the views must be started with Attributes.
package view

import "errors"

// ErrUnavailable reports that this system has no views.
var ErrUnavailable = errors.New("only Linux can replace files for a single process")

// Mount makes Source, a file or folder, appear at Target, an absolute path. If Target does not
// exist, it is created in the view only.
type Mount struct {
	Source, Target string
	// Writable lets the process change Source.
	Writable bool
}
