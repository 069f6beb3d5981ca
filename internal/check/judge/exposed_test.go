package judge

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/exposure"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const password = "s3cr3t-Passw0rd"

// secret is a Secret with a password, as it is stored.
var secret = `Secret default/db {"data":{"password":"` + base64.StdEncoding.EncodeToString([]byte(password)) + `"}}`

// exposes records where values of Secrets are readable, as a lab does at the end of a run.
func exposes(s *story, output string) {
	var values exposure.Values
	for _, c := range s.run.History.Changes {
		values.Add(c.Ref, c.After)
	}
	s.run.Exposed = values.Find(s.run.History, nil, output)
}

func config(name, value string) string {
	return fmt.Sprintf(`ConfigMap default/%s {"data":{"conf":"pw=%s"}}`, name, value)
}

func TestOnlyTheControllerItselfCanLeakASecret(t *testing.T) {
	for name, tt := range map[string]struct {
		story  func(*story)
		output string
		want   string
	}{
		"nothing": {func(s *story) { s.puts(driver, secret).puts(one, config("app", "x")) }, "", ""},
		"into a ConfigMap": {func(s *story) { s.puts(driver, secret).puts(one, config("app", password)) }, "",
			"the controller writes the value of password of Secret default/db to data.conf of ConfigMap default/app"},
		"before it writes the Secret": {func(s *story) { s.puts(one, config("app", password)).puts(one, secret) }, "",
			"the controller writes the value of password of Secret default/db to data.conf of ConfigMap default/app"},
		"into its log": {func(s *story) { s.puts(driver, secret) }, "login with " + password,
			"the controller writes the value of password of Secret default/db to its log"},
		"another client does it": {func(s *story) { s.puts(driver, secret).puts(driver, config("app", password)) }, "", ""},
		"after another client did it": {func(s *story) {
			s.puts(driver, secret).puts(driver, config("user", password)).puts(one, config("app", password))
		}, password, ""},
		"a resource already contains it": {func(s *story) {
			s.puts(driver, `Widget.x default/p {"spec":{"password":"`+password+`"}}`).puts(one, secret).puts(one, config("app", password))
		}, "", ""},
		"into a field that is no place for readers": {func(s *story) {
			s.puts(driver, secret).puts(one, `Connection.x default/c {"spec":{"password":"`+password+`"}}`)
		}, "", ""},
		"and upstream's controllers copy it": {func(s *story) {
			s.puts(driver, secret).puts(one, `Deployment.apps default/d {"spec":{"template":{"spec":{"containers":[{"args":["`+password+`"]}]}}}}`)
			s.puts(driver, `Pod default/d-1 {"spec":{"containers":[{"args":["`+password+`"]}]}}`)
		}, "", "the controller writes the value of password of Secret default/db to spec.template.spec.containers[0].args[0] of Deployment.apps default/d"},
	} {
		var runs []*evidence.Run
		for range 3 {
			s := tell(t)
			s.step("create").puts(driver, widget)
			tt.story(s)
			run := s.end()
			exposes(s, tt.output)
			runs = append(runs, run)
		}
		r, err := NewReference(scene(), runs)
		if err != nil {
			t.Fatal(err)
		}
		var sentences []string
		for _, f := range Faultless(r, runs, nil) {
			if f.Verdict == SecretLeaked {
				sentences = append(sentences, f.Sentence)
			}
			if strings.Contains(fmt.Sprintf("%+v", f), password) {
				t.Errorf("%s: the finding itself contains the password: %+v", name, f)
			}
		}
		if got := strings.Join(sentences, "\n"); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
		if again := Judge(r, runs[0], nil); len(again) > 0 {
			t.Errorf("%s: a fault is blamed for what happens without it: %v", name, verdicts(again))
		}
	}
}

func TestASecretThatIsLeakedOnlyAfterAFaultIsFound(t *testing.T) {
	begin := func(s *story) {
		s.step("create").puts(driver, widget).puts(driver, secret).puts(one, config("app", "x"))
	}
	r := reference(t, scene(), begin)
	for name, tt := range map[string]struct {
		more   func(*story)
		output string
		want   string
	}{
		"nothing":      {func(*story) {}, "the password is wrong", ""},
		"in its log":   {func(*story) {}, "cannot connect to postgres://a:" + password + "@db", "SECRET LEAKED"},
		"in an Event":  {func(s *story) { event(s, password) }, "", "SECRET LEAKED"},
		"a good Event": {func(s *story) { event(s, "nothing") }, "", ""},
	} {
		s := tell(t)
		begin(s)
		tt.more(s)
		exposes(s, tt.output)
		found := Judge(r, s.after(do(fault.Error500, "create", "")), nil)
		if got := verdicts(found); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}

func TestAProjectMayAcceptAPlaceForASecret(t *testing.T) {
	for line, want := range map[string]string{
		"":                                  "SECRET LEAKED",
		"ConfigMap default/app data.conf":   "",
		"ConfigMap default/app data[conf]":  "",
		"ConfigMap data.*":                  "",
		"ConfigMap *":                       "",
		"ConfigMap default/other data.conf": "SECRET LEAKED",
		"ConfigMap default/app data.other":  "SECRET LEAKED",
	} {
		sc := scene()
		if line != "" {
			sc.Ignore = []string{line}
		}
		var runs []*evidence.Run
		for range 3 {
			s := tell(t)
			s.step("create").puts(driver, widget).puts(driver, secret).puts(one, config("app", password))
			runs = append(runs, s.end())
			exposes(s, "")
		}
		r, err := NewReference(sc, runs)
		if err != nil {
			t.Fatal(err)
		}
		if got := verdicts(Faultless(r, runs, nil)); got != want {
			t.Errorf("%s: %q, not %q", line, got, want)
		}
	}
}

func TestAnArgumentOfAContainerMayBeAccepted(t *testing.T) {
	ref, _ := object(t, "Deployment.apps default/d")
	const path = "spec.template.spec.containers[0].args[1]"
	for line, want := range map[string]bool{
		"Deployment.apps default/d " + path:                         true,
		"Deployment.apps spec.template.spec.containers[].args[]":    true,
		"Deployment.apps spec.template.spec.containers[].command[]": false,
		"StatefulSet.apps spec.template.spec.containers[].args[]":   false,
		"Deployment.apps default/e " + path:                         false,
	} {
		if got := (&state.Mask{Configured: []string{line}}).Accepts(ref, "Deployment.apps default/d", path); got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
}

// event makes the controller write an Event, which is no part of its work.
func event(s *story, message string) {
	ref, _ := object(s.t, "Event default/w.1")
	s.puts(driver, `Event default/w.1 {"message":"failed: `+message+`"}`)
	s.entry(trace.Entry{Instance: one, Call: &trace.Call{Verb: "create", Path: "/p", Code: 201, ResourceVersion: fmt.Sprint(s.rev),
		Target: trace.Target{Version: "v1", Resource: "events", Namespace: ref.Namespace, Name: ref.Name}}})
}
