package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// programs maps the command that starts a program in the image to the package of the
// program.
var programs = map[string]string{"/manager": "./cmd", "/usage-server": "./cmd/usage-server"}

// notInTheChart lists the flags for which the chart has no value, with the reason for each flag.
var notInTheChart = map[string]string{
	"await":                      "only the Pod of helm test uses it",
	"await-limit":                "only the Pod of helm test uses it",
	"kubeconfig":                 "a manager in the cluster needs no kubeconfig",
	"leader-election-namespace":  "in a cluster, the Pod's own namespace is used",
	"metrics-secure":             "without it, metrics are served only on loopback",
	"pprof-bind-address":         "only for measurements, on loopback; extraArgs can set it",
	"webhook-configurations":     "only for koboshi ship; the chart makes the certificate itself",
	"webhook-self-signed-secret": "only for koboshi ship; the chart makes the certificate itself",
	"webhook-service":            "only for koboshi ship; the chart makes the certificate itself",
	"zap-devel":                  "it only changes the defaults of the other --zap flags",
}

// A flagHelp holds the defaults of a program's flags by name, as printed by its help.
type flagHelp map[string]string

var flagLine = regexp.MustCompile(`(?m)^  -([a-z-]+)\b`)

// help builds each program from the source, and returns the flags in its help.
func help(t *testing.T) map[string]flagHelp {
	t.Helper()
	askOnce.Do(func() { asked = ask(t) })
	if len(asked) != len(programs) {
		t.Fatal("an earlier test could not read the flags of the programs")
	}
	return asked
}

var (
	askOnce sync.Once
	asked   map[string]flagHelp
)

func ask(t *testing.T) map[string]flagHelp {
	t.Helper()
	dir := t.TempDir()
	all := map[string]flagHelp{}
	for command, source := range programs {
		program := filepath.Join(dir, filepath.Base(command))
		build := exec.Command("go", "build", "-o", program, source)
		build.Dir = root
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", build.Args, err, out)
		}
		// The exit code is ignored: it only shows that the program printed its help and did
		// not run.
		out, _ := exec.Command(program, "--help").CombinedOutput()
		all[command] = parseHelp(string(out))
		if len(all[command]) == 0 {
			t.Fatalf("%s --help names no flags:\n%s", command, out)
		}
	}
	return all
}

func parseHelp(text string) flagHelp {
	flags := flagHelp{}
	at := flagLine.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		value := ""
		if d := defaultValue.FindStringSubmatch(text[m[0]:end]); d != nil {
			value = strings.Trim(d[1], `"`)
		}
		flags[text[m[2]:m[3]]] = value
	}
	return flags
}

var defaultValue = regexp.MustCompile(`\(default ([^)]*)\)\s*$`)

// containers returns the containers of all Deployments.
func containers(in objects) []corev1.Container {
	var all []corev1.Container
	for _, object := range in {
		if d, ok := object.(*appsv1.Deployment); ok {
			all = append(all, d.Spec.Template.Spec.Containers...)
		}
	}
	return all
}

func flagName(arg string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return name
}

func TestEveryFlagInTheManifestsIsOneOfTheProgram(t *testing.T) {
	known := help(t)
	for name, in := range map[string]objects{
		"kustomize":                kustomization(t, []string{"default", "usage"}, components...),
		"kustomize, one namespace": kustomization(t, []string{"default"}, "namespaced"),
		"chart":                    rendered(t, nil),
		"chart, all flags":         rendered(t, allFlags()),
	} {
		for _, c := range containers(in) {
			flags, ok := known[c.Command[0]]
			if !ok {
				t.Fatalf("%s: no program is known for the command %s", name, c.Command[0])
			}
			for _, arg := range c.Args {
				if _, ok := flags[flagName(arg)]; !ok {
					t.Errorf("%s: %s has no flag %s", name, c.Command[0], arg)
				}
			}
		}
	}
}

func TestEveryFlagOfTheProgramsHasAValueInTheChart(t *testing.T) {
	known := help(t)
	for _, c := range containers(rendered(t, allFlags())) {
		set := map[string]bool{}
		for _, arg := range c.Args {
			set[flagName(arg)] = true
		}
		for flag := range known[c.Command[0]] {
			if !set[flag] && notInTheChart[flag] == "" {
				t.Errorf("no value of the chart sets --%s of %s", flag, c.Command[0])
			}
		}
	}
}

func TestTheChartSpellsNumbersAsFlagsWantThem(t *testing.T) {
	var args []string
	for _, c := range containers(rendered(t, allFlags())) {
		args = append(args, c.Args...)
	}
	all := strings.Join(args, "\n") + "\n"
	for _, want := range []string{
		"--max-concurrent-reconciles=1000000\n", "--store-requests-per-second=0.5\n",
		"--store-requests-per-second=1000000\n", "--max-objects=2000000\n", "--v=0\n",
		"--namespaces=team-a,team-b\n", "--allowed-endpoints=*.example.com,10.0.0.0/8\n", "--status-heartbeat=0\n",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}

var documented = regexp.MustCompile(`Null: (\S+)\. \(--([a-z-]+)\)`)

func TestTheDefaultsInTheCommentsOfTheChartAreThoseOfThePrograms(t *testing.T) {
	known := help(t)
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manager, usage, found := strings.Cut(regexp.MustCompile(`\n\s*#`).ReplaceAllString(string(text), ""), "\nusage:")
	if !found {
		t.Fatal("values.yaml has no usage")
	}
	check := func(text, program string, least int) {
		matches := documented.FindAllStringSubmatch(text, -1)
		if len(matches) < least {
			t.Errorf("only %d defaults of %s are documented", len(matches), program)
		}
		for _, m := range matches {
			// The logger's defaults are not in its help text.
			if got := known[program][m[2]]; !sameDefault(m[1], got) && !strings.HasPrefix(m[2], "zap-") {
				t.Errorf("values.yaml says that --%s is %s by default, %s says %s", m[2], m[1], program, got)
			}
		}
	}
	check(manager, "/manager", 4)
	check(usage, "/usage-server", 6)
}

// sameDefault compares durations by value. The help does not show a default that
// is the zero value.
func sameDefault(documented, helped string) bool {
	a, err := time.ParseDuration(documented)
	b, otherErr := time.ParseDuration(helped)
	if err == nil && otherErr == nil {
		return a == b
	}
	return documented == helped || documented == "0" && helped == ""
}

func TestTheImageHasEveryCommandOfTheManifests(t *testing.T) {
	text, err := os.ReadFile(root + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	copied := regexp.MustCompile(`(?m)^COPY --from=build (.*) /$`).FindString(string(text))
	for _, c := range containers(rendered(t, everything())) {
		command := c.Command[0]
		if !strings.Contains(string(text), "-o /out"+command+" "+programs[command]) {
			t.Errorf("the Dockerfile does not build %s from %s", command, programs[command])
		}
		if !strings.Contains(copied, " /out"+command+" ") {
			t.Errorf("the Dockerfile does not copy %s", command)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^COPY ([a-z]+/) `).FindAllStringSubmatch(string(text), -1) {
		ignore, err := os.ReadFile(root + "/.dockerignore")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(ignore), "!"+m[1]+"\n") {
			t.Errorf(".dockerignore keeps %s out of the build", m[1])
		}
	}
}
