package apiserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/apiserver/pkg/util/responsewriter"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	v2Path = "/openapi/v2"
	v3Path = "/openapi/v3"
)

// lazyOpenAPI describes the built-in APIs on the first request. Upstream
// describes the APIs before the server is ready, which costs a quarter of the
// CPU time of a start and 35 MB of memory, although most test suites never read
// the result (docs/investigations/2026-11-20-envtest.md).
//
//	client ──▶ aggregator /openapi/v3 ──▶ index: of all servers, by groups
//	                     │                    └─ ours: without hashes until a client asks
//	                     └──▶ /openapi/v3/… ──▶ build, then upstream's handler
//
// The aggregator reads the index of each server every second. Each line of an
// index contains a hash of the document to which the line refers, so the true
// index would require building all documents immediately. The aggregator
// therefore gets an index without hashes, which are filled in when a client
// asks for the index.
type lazyOpenAPI struct {
	server *genericapiserver.GenericAPIServer
	v2     *common.Config
	v3     *common.OpenAPIV3Config

	buildV2, buildV3 func() http.Handler
}

func newLazyOpenAPI(server *genericapiserver.GenericAPIServer, v2 *common.Config, v3 *common.OpenAPIV3Config) *lazyOpenAPI {
	l := &lazyOpenAPI{server: server, v2: v2, v3: v3}
	l.buildV2 = sync.OnceValue(func() http.Handler {
		built := mux.NewPathRecorderMux("openapi/v2")
		routes.OpenAPI{Config: l.v2}.InstallV2(l.server.Handler.GoRestfulContainer, built)
		return built
	})
	l.buildV3 = sync.OnceValue(func() http.Handler {
		built := mux.NewPathRecorderMux("openapi/v3")
		config := *l.v3
		config.Definitions = definitions(&config)
		routes.OpenAPI{V3Config: &config}.InstallV3(l.server.Handler.GoRestfulContainer, built)
		return built
	})
	return l
}

// definitions returns the definitions that upstream's default configuration
// computes when it is created.
func definitions(config *common.OpenAPIV3Config) map[string]common.OpenAPIDefinition {
	return config.GetDefinitions(func(name string) spec.Ref {
		defName, _ := config.GetDefinitionName(name)
		return spec.MustCreateRef("#/components/schemas/" + common.EscapeJsonPointer(defName))
	})
}

// install registers handlers for the paths at which upstream installs OpenAPI.
func (l *lazyOpenAPI) install() {
	paths := l.server.Handler.NonGoRestfulMux
	paths.HandleFunc(v2Path, func(w http.ResponseWriter, r *http.Request) { l.buildV2().ServeHTTP(w, r) })
	paths.HandleFunc(v3Path, l.servePromises)
	paths.HandlePrefix(v3Path+"/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.buildV3().ServeHTTP(w, r) }))
}

// servePromises serves the aggregator an index that lists all groups, but has
// no hashes.
func (l *lazyOpenAPI) servePromises(w http.ResponseWriter, _ *http.Request) {
	index := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for _, service := range l.server.Handler.GoRestfulContainer.RegisteredWebServices() {
		path := strings.TrimPrefix(service.RootPath(), "/")
		index.Paths[path] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: v3Path + "/" + path}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(index)
}

// keepPromises wraps the aggregator's handler and adds the hashes to its index.
func (l *lazyOpenAPI) keepPromises(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != v3Path || fromItself(r) {
			next.ServeHTTP(w, r)
			return
		}
		index, err := readIndex(next)
		if err != nil {
			next.ServeHTTP(w, r)
			return
		}
		built, err := readIndex(l.buildV3())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for path, promised := range index.Paths {
			if kept, ok := built.Paths[path]; ok && !strings.Contains(promised.ServerRelativeURL, "?") {
				index.Paths[path] = kept
			}
		}
		body, err := json.Marshal(index)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		http.ServeContent(w, r, v3Path, time.Now(), bytes.NewReader(body)) // as the aggregator does
	})
}

// fromItself reports whether the request comes from the server's own admission,
// which polls the index for changes.
func fromItself(r *http.Request) bool {
	u, ok := request.UserFrom(r.Context())
	return ok && u.GetName() == user.APIServerUser
}

func readIndex(h http.Handler) (*handler3.OpenAPIV3Discovery, error) {
	r, err := http.NewRequest(http.MethodGet, v3Path, nil)
	if err != nil {
		return nil, err
	}
	answer := responsewriter.NewInMemoryResponseWriter()
	h.ServeHTTP(answer, r)
	index := &handler3.OpenAPIV3Discovery{}
	return index, json.Unmarshal(answer.Data(), index)
}
