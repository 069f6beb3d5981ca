// The program needs one module.
package main

import "golang.org/x/mod/semver"

func main() { println(semver.IsValid("v1.0.0")) }
