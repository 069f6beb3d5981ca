package static

import (
	"bytes"
	"runtime"
	_ "unsafe" // for go:linkname
)

// Kubernetes is the version of the built-in Kubernetes, including the leading v.
const Kubernetes = "v1.37.0"

// etcd is the module with the built-in etcd.
const etcd = "go.etcd.io/etcd/server/v3"

// reported lists the other modules whose versions explain what a bug report describes: the simulated
// nodes, the generators, the renderers of charts and kustomizations, the images, and the rules in CEL.
var reported = []string{
	"github.com/google/cel-go", "github.com/google/go-containerregistry", "helm.sh/helm/v4",
	"sigs.k8s.io/controller-tools", "sigs.k8s.io/kustomize/api", "sigs.k8s.io/kwok",
}

// modinfo returns the build information between two markers of 16 bytes. Package runtime/debug
// could parse the build information, but it imports fmt and is therefore initialized too late.
//
//go:linkname modinfo runtime/debug.modinfo
func modinfo() string

// VersionLine returns the line that koboshi version prints.
func VersionLine() string {
	return "koboshi " + Koboshi() + ", Kubernetes " + Kubernetes + ", " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
}

// VersionJSON returns the line that koboshi version -o json prints: everything about the program that a
// bug report needs. The revision is known only if the program was built in a checkout.
func VersionJSON() string {
	o := newObject()
	o.text("koboshi", Koboshi())
	if revision := setting("vcs.revision"); revision != "" {
		o.text("revision", revision)
		o.text("revisionTime", setting("vcs.time"))
		o.raw("modified", setting("vcs.modified"))
	}
	o.text("kubernetes", Kubernetes)
	o.text("etcd", moduleVersion(etcd))
	o.text("go", runtime.Version())
	o.text("platform", runtime.GOOS+"/"+runtime.GOARCH)
	modules := newObject()
	for _, module := range reported {
		modules.text(module, moduleVersion(module))
	}
	o.raw("modules", modules.end())
	return o.end() + "\n"
}

// Koboshi returns the version of the program's own module.
func Koboshi() string {
	// The main module's line holds mod, the path, the version and, if known, a checksum.
	for _, f := range records() {
		if len(f) > 2 && f[0] == "mod" && f[2] != "" {
			return f[2]
		}
	}
	return "(devel)"
}

// moduleVersion returns the version of a module that the program was built with.
func moduleVersion(path string) string {
	for _, f := range records() {
		if len(f) > 2 && f[0] == "dep" && f[1] == path {
			return f[2]
		}
	}
	return "unknown"
}

// setting returns a setting of the build, such as vcs.revision, or "" if it was not recorded.
func setting(name string) string {
	for _, f := range records() {
		if len(f) > 1 && f[0] == "build" && len(f[1]) > len(name) && f[1][:len(name)] == name && f[1][len(name)] == '=' {
			return f[1][len(name)+1:]
		}
	}
	return ""
}

// records returns the lines of the build information, each split into its fields.
func records() (all [][]string) {
	for _, line := range bytes.Split([]byte(modinfo()), []byte("\n")) {
		var fields []string
		for _, f := range bytes.Split(line, []byte("\t")) {
			fields = append(fields, string(f))
		}
		all = append(all, fields)
	}
	return all
}

// object is a JSON object that is being written, because encoding/json is initialized too late.
type object struct{ written []byte }

func newObject() *object { return &object{[]byte("{")} }

// raw adds a member whose value is JSON already.
func (o *object) raw(name, value string) {
	if len(o.written) > 1 {
		o.written = append(o.written, ',')
	}
	o.written = append(o.written, quote(name)+":"+value...)
}

func (o *object) text(name, value string) { o.raw(name, quote(value)) }

func (o *object) end() string { return string(o.written) + "}" }

// quote writes a text as JSON. Build information has no control characters.
func quote(text string) string {
	quoted := []byte{'"'}
	for _, b := range []byte(text) {
		if b == '"' || b == '\\' {
			quoted = append(quoted, '\\')
		}
		quoted = append(quoted, b)
	}
	return string(append(quoted, '"'))
}
