// Package terminal opens pseudo terminals.
package terminal
