package output

import "regexp"

// shortages matches the errors of a system that has run out of something: the texts of EMFILE,
// ENFILE, ENOSPC, ENOMEM and EAGAIN. Programs that watch files get them on a machine with many other
// programs, because the kernel limits the inotify instances of each user.
var shortages = regexp.MustCompile(`too many open files(?: in system)?|no space left on device|cannot allocate memory|resource temporarily unavailable`)

// Shortage returns the error that shows that the machine, and not the program, is the reason for an
// exit, or "" if the end of the output shows nothing of this kind.
func Shortage(text string) string { return shortages.FindString(LastLines(text, mostShortage)) }

// mostShortage is the number of lines at the end of the output that are searched.
const mostShortage = 5
