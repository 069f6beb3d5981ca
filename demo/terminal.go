package main

import (
	"fmt"
	"os"
	"strings"
)

// interactive reports whether the demo runs on a terminal.
func interactive() bool {
	info, err := os.Stdout.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("CI") != "true"
}

func say(text string) { fmt.Println("\n" + text) }

// show prints a command as a user would type it.
func show(command string) { fmt.Println("  $ " + command) }

func bold(s string) string {
	if !interactive() || os.Getenv("NO_COLOR") != "" {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

func indent(s string) string {
	if s = strings.TrimRight(s, "\n"); s == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(s, "\n", "\n    ") + "\n"
}

// progress rewrites one line on a terminal. In a pipe it prints nothing, because each wait
// takes only seconds.
func progress(line string) {
	if interactive() {
		fmt.Printf("\r  %-76s", line)
	}
}

func progressDone() {
	if interactive() {
		fmt.Printf("\r%78s\r", "")
	}
}
