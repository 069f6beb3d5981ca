package project

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHelpOfEitherFlagPackageIsRead(t *testing.T) {
	want := map[string]flagInfo{
		"health-probe-bind-address": {Type: "string", Default: ":8081"},
		"leader-elect":              {},
		"enable-http2":              {Default: "true"},
		"webhook-port":              {Type: "int", Default: "9443"},
		"zap-log-level":             {Type: "value"},
	}
	for name, help := range map[string]string{
		"flag": `Usage of /tmp/manager:
  -enable-http2
    	If set, HTTP/2 will be enabled (default true)
  -health-probe-bind-address string
    	The address the probe endpoint binds to. (default ":8081")
  -leader-elect
    	Enable leader election for controller manager. Enabling this will ensure
    	  there is only one --active manager.
  -webhook-port int
    	The port (default 9443)
  -zap-log-level value
    	Zap Level to configure the verbosity of logging.
`,
		"pflag": `Runs the manager.

Usage:
  manager [flags]

Flags:
      --enable-http2                       If set, HTTP/2 will be enabled (default true)
      --health-probe-bind-address string   The address (default ":8081")
      --leader-elect                       Enable leader election
  -p, --webhook-port int                   The port (default 9443)
      --zap-log-level value                Zap Level
`,
	} {
		if diff := cmp.Diff(want, parseHelp(help)); diff != "" {
			t.Errorf("%s, -want +got:\n%s", name, diff)
		}
	}
	if got := parseHelp("panic: no cluster\n\ngoroutine 1 [running]:\n\tmain.main()\n\t\t/x/main.go:7 +0x1d\nexit status 2\n"); len(got) > 0 {
		t.Errorf("flags in text that is not help: %v", got)
	}
}

func TestArgumentsAreTakenApartAsGoProgramsDo(t *testing.T) {
	args := []string{"start", "--leader-elect", "-a", "1", "--b=2", "--verbose", "--c", "word"}
	got := parseArguments(args, map[string]flagInfo{"a": {Type: "int"}, "verbose": {}, "c": {Type: "string"}})
	var pairs []string
	var texts []string
	for _, a := range got {
		pairs = append(pairs, a.name+"="+a.value)
		texts = append(texts, a.text...)
	}
	if diff := cmp.Diff([]string{"=", "leader-elect=", "a=1", "b=2", "verbose=", "c=word"}, pairs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(args, texts); diff != "" {
		t.Errorf("something was lost, -want +got:\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "---\n---\n", "# only a comment\n", "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: []}, 7]\n", "{\"apiVersion\": \"v1\"}",
		"a: &a [*a]", "a: &a {b: 1}\n<<: *a\n", "kind: [x]\napiVersion: {}\nmetadata: 3\n", "\x00", "? {a: b}\n: c\n",
		"apiVersion: v1\nkind: X\nmetadata: {name: x, labels: 7}\n", "apiVersion: v1\nkind: X\nmetadata: {generateName: 1e400}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := parse("file.yaml", data, true)
		if err != nil && !strings.HasPrefix(err.Error(), "file.yaml: document ") {
			t.Errorf("the error does not say where: %v", err)
		}
		for _, d := range docs {
			if d.Number < 1 || d.Object.GetKind() == "" || d.Object.GetName()+d.Object.GetGenerateName() == "" {
				t.Errorf("not a whole object: %v", d)
			}
		}
		if err == nil {
			p := &Project{}
			_ = p.describe(docs, nil)
		}
	})
}

func FuzzParseHelp(f *testing.F) {
	f.Add("  -a string\n\tx (default \"b\")\n", "--a b c=d")
	f.Fuzz(func(t *testing.T, help, line string) {
		args := strings.Fields(line)
		var texts []string
		for _, a := range parseArguments(args, parseHelp(help)) {
			texts = append(texts, a.text...)
		}
		if strings.Join(texts, " ") != strings.Join(args, " ") {
			t.Errorf("%q became %q", args, texts)
		}
	})
}

func FuzzFill(f *testing.F) {
	f.Add("--gates=A=${A:=true},B=${B}", "B", "x")
	f.Add("${A:=\"\"}${", "A", "$")
	f.Fuzz(func(t *testing.T, text, name, value string) {
		p := &Project{options: Options{Env: []string{name + "=" + value}}}
		filled, missing := p.fill(text)
		if !strings.Contains(text, "${") && filled != text {
			t.Errorf("%q became %q", text, filled)
		}
		if missing != "" && !strings.Contains(filled, "${"+missing+"}") {
			t.Errorf("%q became %q, without %s", text, filled, missing)
		}
	})
}
