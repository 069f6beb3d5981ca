package output

import (
	"strings"
	"testing"
)

const storagePanic = `2026/11/25 10:00:00 starting
panic: quantities must match the regular expression [recovered]
	panic: quantities must match the regular expression

goroutine 245 [running]:
panic({0x1a2b3c0?, 0xc000123450?})
	/usr/local/go/src/runtime/panic.go:787 +0x132
k8s.io/apimachinery/pkg/api/resource.MustParse({0xc0007a2bd0, 0x5})
	/go/pkg/mod/k8s.io/apimachinery@v0.36.0/pkg/api/resource/quantity.go:151 +0x1a5
encoding/json.(*decodeState).object(0xc000128008, {0x1a2b3c0?})
	/usr/local/go/src/encoding/json/decode.go:755 +0x10
example.com/operator/internal/controller.(*DatabaseReconciler).storage(0xc000128008, {0x7, 0x8})
	/src/operator/internal/controller/database_controller.go:87 +0x55
main.main()
	/src/operator/cmd/main.go:12 +0x1d
exit status 2
`

func TestPanicIsDescribedByItsLineAndTheFirstFunctionOfTheProgram(t *testing.T) {
	trimmed := strings.NewReplacer("/usr/local/go/src/", "", "/go/pkg/mod/", "", "/src/", "example.com/").Replace(storagePanic)
	trimmed = strings.Replace(trimmed, "encoding/json.(*decodeState).object(0xc000128008, {0x1a2b3c0?})\n\tencoding/json/decode.go:755 +0x10\n", "", 1)
	_, stack, _ := strings.Cut(storagePanic, "goroutine")
	for name, text := range map[string]string{
		"as printed":     storagePanic,
		"trimmed paths":  trimmed,
		"in one line":    `E1125 "Observed a panic" {"stacktrace": "` + strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace("goroutine"+stack) + `"}`,
		"with a library": strings.Replace(storagePanic, "k8s.io/", "vendored.example.com/", 1),
	} {
		p := FindPanic(text)
		if p.Frame != "controller.(*DatabaseReconciler).storage (database_controller.go:87)" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if got := Reason(storagePanic); !strings.HasPrefix(got, "panic: quantities must match") || !strings.HasSuffix(got, "(database_controller.go:87)") {
		t.Errorf("the reason is %q", got)
	}
}

func TestReasonWithoutAPanicIsTheLastLine(t *testing.T) {
	for text, want := range map[string]string{
		"flag provided but not defined: -x\nusage\n": "usage",
		"": "",
		"panic: short\n\ngoroutine 1 [running]:\nruntime.gopanic()\n\t/usr/local/go/src/runtime/panic.go:1\n": "panic: short",
	} {
		if got := Reason(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestReasonOfNodeIsItsErrorAndNotItsVersion(t *testing.T) {
	const missing = "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module 'lantern'\nRequire stack:\n- /srv/a.js\n" +
		"    at Module._load (node:internal/modules/cjs/loader:1069:27) {\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v20.20.2\n"
	for text, want := range map[string]string{
		missing:                            "Error: Cannot find module 'lantern'",
		"Error: early\nNode.js is ready\n": "Node.js is ready",
		"Node.js v20.20.2\n":               "Node.js v20.20.2",
	} {
		if got := Reason(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func FuzzReason(f *testing.F) {
	f.Add(storagePanic)
	f.Add("panic: \n\nx(\n\t.go:1")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Reason(text); strings.TrimSpace(text) == "" && got != "" {
			t.Errorf("%q for an empty text", got)
		}
	})
}
