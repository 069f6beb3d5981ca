// Package thread runs functions on threads that may be changed beyond repair.
package thread
