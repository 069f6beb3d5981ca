// Package thread runs functions on threads whose state they may change
// irreversibly.
package thread
