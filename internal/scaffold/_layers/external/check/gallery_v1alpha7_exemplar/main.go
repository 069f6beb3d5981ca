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
// variable PORT.
package main

import (
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"koboshi.example/project/internal/controller/exemplarserver"
)

func main() {
	server := &http.Server{
		Addr:              net.JoinHostPort("127.0.0.1", os.Getenv("PORT")),
		Handler:           exemplarserver.New(),
		ReadHeaderTimeout: 10 * time.Second,
	}
	log.Fatal(server.ListenAndServe())
}
