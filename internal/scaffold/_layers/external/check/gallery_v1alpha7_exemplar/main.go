/*
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Command gallery_v1alpha7_exemplar runs the store for koboshi check, on the port in the
// variable PORT. With the argument list, it lists the texts in the store whose address is in
// GALLERY_EXEMPLAR_STORE.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"koboshi.example/project/internal/controller/exemplarserver"
)

func main() {
	run := serve
	if len(os.Args) == 2 && os.Args[1] == "list" {
		run = list
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	server := &http.Server{
		Addr:              net.JoinHostPort("127.0.0.1", os.Getenv("PORT")),
		Handler:           exemplarserver.New(),
		ReadHeaderTimeout: 10 * time.Second,
	}
	return server.ListenAndServe()
}

func list() error {
	address, err := url.JoinPath(os.Getenv("GALLERY_EXEMPLAR_STORE"), "texts")
	if err != nil {
		return err
	}
	resp, err := http.Get(address)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the store responded with %s", resp.Status)
	}
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}
