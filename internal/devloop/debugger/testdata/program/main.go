// Program is debugged by a test. It waits for SIGTERM, unless its argument is --exit or --panic.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	fmt.Println("started", strings.Join(os.Args[1:], " "))
	switch os.Args[1] {
	case "--exit":
		return
	case "--panic":
		panic("as the test wants")
	}
	<-asked
	fmt.Println("asked to exit")
}
