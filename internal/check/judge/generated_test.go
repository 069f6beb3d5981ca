package judge

import (
	"fmt"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// value returns a text that looks generated, and differs in each run.
func (s *story) value(n int) string { return fmt.Sprintf("Zk%dx%dQvTqWm", s.runSeed, n) }

func TestACredentialOutsideOfASecretIsNotGeneratedAgain(t *testing.T) {
	holder := func(format string) func(value string) string {
		return func(value string) string { return fmt.Sprintf(format, value) }
	}
	config := holder(`ConfigMap default/c {"data":{"password":%q}}`)
	for name, tt := range map[string]struct {
		object func(value string) string
		by     string
		fault  fault.Kind
		want   string
	}{
		"a password in a ConfigMap":          {config, two, fault.KillLost, "DESTRUCTIVE BLIP"},
		"a token in a status":                {holder(`Widget.x default/w {"spec":{"n":2},"status":{"joinToken":%q}}`), two, fault.KillLost, "DESTRUCTIVE BLIP"},
		"a key in an annotation":             {holder(`ConfigMap default/c {"metadata":{"annotations":{"x.example.com/api-key":%q}}}`), two, fault.KillLost, "DESTRUCTIVE BLIP"},
		"the hash of a password":             {holder(`ConfigMap default/c {"data":{"passwordHash":%q}}`), two, fault.KillLost, ""},
		"a fencing token":                    {holder(`ConfigMap default/c {"data":{"fencingToken":%q}}`), two, fault.KillLost, ""},
		"the name of a Secret":               {holder(`ConfigMap default/c {"data":{"secretName":%q}}`), two, fault.KillLost, ""},
		"an unknown value":                   {holder(`ConfigMap default/c {"data":{"colour":%q}}`), two, fault.KillLost, ""},
		"a short value":                      {func(value string) string { return config(value[:4] + value[len(value)-3:]) }, two, fault.KillLost, ""},
		"a text for people":                  {func(value string) string { return config("see " + value) }, two, fault.KillLost, ""},
		"a password that another client set": {config, driver, fault.KillLost, ""},
		"a change by another client":         {config, two, fault.DeleteChild, ""},
	} {
		story := func(again bool) func(*story) {
			return func(s *story) {
				s.step("create").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).puts(one, tt.object(s.value(1)))
				s.step("change")
				if again {
					s.puts(tt.by, tt.object(s.value(2)))
				}
			}
		}
		r := reference(t, scene(), story(false))
		for again, want := range map[bool]string{false: "", true: tt.want} {
			s := tell(t)
			story(again)(s)
			f := killedAt("change")
			f.Kind = tt.fault
			if got := verdicts(Judge(r, s.after(f), nil)); got != want {
				t.Errorf("%s, again: %v: %q, not %q", name, again, got, want)
			}
		}
	}
}

func TestAnIdentifierStaysIfADisturbanceDoesNotChangeIt(t *testing.T) {
	story := func(field, second string) func(*story) {
		return func(s *story) {
			status := func(value string) string {
				return fmt.Sprintf(`Widget.x default/w {"spec":{"n":2},"status":{%q:%q}}`, field, value)
			}
			s.step("create").puts(driver, widget).puts(one, status(s.value(1)))
			s.step("change")
			if second != "" {
				s.puts(two, status(s.value(2)))
			}
		}
	}
	for name, tt := range map[string]struct {
		field            string
		disturbed, again string
		want             string
	}{
		"it is changed by a fault":        {"cluster", "", "again", "DESTRUCTIVE BLIP"},
		"it is kept":                      {"cluster", "", "", ""},
		"a disturbance changes it":        {"cluster", "again", "again", ""},
		"its name says that it is a hash": {"specHash", "", "again", ""},
	} {
		r := reference(t, scene(), story(tt.field, ""))
		d := tell(t)
		story(tt.field, tt.disturbed)(d)
		r.Disturb(d.end())
		s := tell(t)
		story(tt.field, tt.again)(s)
		if got := verdicts(Judge(r, s.after(killedAt("change")), nil)); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}

func TestACredentialIsKeptAfterAFaultAtRestInTheStepThatMadeIt(t *testing.T) {
	for _, object := range []string{`Secret default/s {"data":{"p":%q}}`, `ConfigMap default/c {"data":{"password":%q}}`} {
		sc := scene()
		sc.Steps = []scenario.Step{{Name: "create"}}
		create := func(s *story) *story {
			return s.step("create").puts(driver, widget).puts(one, fmt.Sprintf(object, "hmac:"+s.value(1)))
		}
		r := reference(t, sc, func(s *story) { create(s) })
		for again, want := range map[bool]string{false: "", true: "DESTRUCTIVE BLIP"} {
			s := create(tell(t))
			s.begins(evidence.Stage("applied"))
			s.run.Steps[0].Rested = 0
			if again {
				s.puts(two, fmt.Sprintf(object, "hmac:"+s.value(2)))
			}
			if got := verdicts(Judge(r, s.after(do(fault.Restart, "create", "")), nil)); got != want {
				t.Errorf("%s, again: %v: %q, not %q", object, again, got, want)
			}
		}
	}
}

func TestAPasswordMayBeGeneratedAgainIfAnotherClientDeletedItsOwner(t *testing.T) {
	for owner, want := range map[string]string{"": "DESTRUCTIVE BLIP", `"owner:ConfigMap default/child"`: ""} {
		if got := renewedAfter(t, fault.DeleteChild, owner, "password"); got != want {
			t.Errorf("with the owner %q: %q, not %q", owner, got, want)
		}
	}
}

func TestACertificateMayBeIssuedAgainAfterAnotherClientChangedItsRequest(t *testing.T) {
	for entry, want := range map[string]string{"tls.crt": "", "password": "DESTRUCTIVE BLIP"} {
		if got := renewedAfter(t, fault.EditChild, "", entry); got != want {
			t.Errorf("%s: %q, not %q", entry, got, want)
		}
	}
}

// renewedAfter judges a run in which a Secret gets a new random value after another client
// changed the ConfigMap child.
func renewedAfter(t *testing.T, kind fault.Kind, owner, entry string) string {
	t.Helper()
	secret := func(s *story, n int) string {
		return fmt.Sprintf(`Secret default/s {"metadata":{%s},"data":{%q:%q}}`, owner, entry, "hmac:"+s.value(n))
	}
	create := func(s *story) *story {
		return s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, secret(s, 1))
	}
	r := reference(t, scene(), func(s *story) { create(s) })
	s := create(tell(t)).begins(evidence.Stage("applied"))
	s.run.Steps[0].Rested = 0
	s.puts(one, secret(s, 2))
	return verdicts(Judge(r, s.after(do(kind, "create", "ConfigMap/default/child")), nil))
}
