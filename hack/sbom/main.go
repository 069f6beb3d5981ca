// Command sbom lists the modules of a Go program in SPDX, for the releases of Koboshi. It uses the same
// code as koboshi ship, which lists the modules of images.
//
//	sbom PROGRAM FILE
//
// SOURCE_DATE_EPOCH sets the time of the document, which otherwise is the beginning of 1970.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/koboshi-dev/koboshi/internal/ship/sbom"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM FILE")
		os.Exit(2)
	}
	if err := list(os.Args[1], os.Args[2], os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func list(program, file, epoch string) error {
	var seconds int64
	if epoch != "" {
		var err error
		if seconds, err = strconv.ParseInt(epoch, 10, 64); err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH is %q, which is not a number of seconds since 1970", epoch)
		}
	}
	document, err := sbom.MakeForProgram(program, "koboshi", time.Unix(seconds, 0))
	if err != nil {
		return err
	}
	return os.WriteFile(file, document, 0o644)
}
