package project

import (
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// These are the names that managers use for their flags, the newest first.
var (
	metricsFlags  = []string{"metrics-bind-address", "metrics-addr", "metrics-address"}
	probeFlags    = []string{"health-probe-bind-address", "health-probe-addr", "health-addr", "probe-addr"}
	electionFlags = []string{"leader-elect", "enable-leader-election", "leader-election"}
	certFlags     = []string{"webhook-cert-path", "webhook-cert-dir", "webhook-certs-dir", "webhook-tls-dir", "cert-dir"}
	portFlags     = []string{"webhook-port", "webhook-server-port"}
	fileFlags     = []string{"webhook-cert-name", "webhook-cert-key", "metrics-cert-path", "metrics-cert-name", "metrics-cert-key",
		"webhook-self-signed-secret"}

	electionNamespace = "leader-election-namespace"
)

// defaultPort and defaultCertDir are the defaults of controller-runtime; the folder is
// relative to TMPDIR.
const (
	defaultPort    = 9443
	defaultCertDir = "k8s-webhook-server/serving-certs"

	certs = "$(" + subject.Certs + ")"
)

// composer turns the command of a Pod into a command for a local process.
type composer struct {
	p     *Project
	given []argument
	known map[string]flagInfo
	args  []string
	env   []string
}

// compose completes the subject for a program whose flags are known. compose puts the Pod's
// arguments first, then the arguments that a check needs, and then the user's, because Go programs
// use the last value of a flag. Words before the first flag, such as a subcommand, stay in front.
func (p *Project) compose(program string, flags map[string]flagInfo) error {
	words, own := leadingWords(p.commandArgs())
	c := p.newComposer(flags)
	c.keep(names(parseArguments(own, flags)), len(words) > 0)
	c.quiet()
	s := &p.Subject
	var err error
	if len(words)+len(own) > 0 && c.namesCertificates(own) {
		c.given = parseArguments(own, flags)
		s.Webhook, err = c.webhookOfCommand(own)
	} else {
		s.Webhook = c.webhook()
	}
	if err != nil {
		return err
	}
	s.Election = c.election()
	if _, ok := c.known["kubeconfig"]; ok {
		c.args = append(c.args, "--kubeconfig=$("+subject.Kubeconfig+")")
	}
	s.Command = slices.Concat([]string{program}, words, c.args, own, p.options.Args)
	s.Env = slices.Concat(c.env, p.options.Env)
	return nil
}

// newComposer returns a composer with the environment of the Pod, and with its arguments
// unless the user does not want them.
func (p *Project) newComposer(flags map[string]flagInfo) *composer {
	c := &composer{p: p, known: flags}
	if m := p.manager; m != nil {
		for _, e := range m.env { // certificates may be in a folder of a volume
			c.env = append(c.env, c.certificates(e))
		}
		c.env = subject.Relocate(c.env, m.files)
		if !p.options.ArgsOnly {
			c.given = parseArguments(m.args, flags)
		}
	}
	return c
}

// merges reports whether the arguments of the Deployment are added to the user's command. They are
// added only if the user names the installation; in a project, the Deployment may belong to another
// program.
func (p *Project) merges() bool {
	return len(p.options.Command) > 0 && p.options.installs() && p.manager != nil && !p.options.ArgsOnly
}

// commandArgs returns the arguments of the user's command.
func (p *Project) commandArgs() []string {
	return slices.Clone(p.options.Command[min(1, len(p.options.Command)):])
}

// leadingWords separates the arguments before the first flag from the others.
func leadingWords(args []string) (words, others []string) {
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") {
			return args[:i], args[i:]
		}
	}
	return args, nil
}

func names(args []argument) (all []string) {
	for _, a := range args {
		if a.name != "" {
			all = append(all, a.name)
		}
	}
	return all
}

// useCommand gives the subject the command that the user named, unchanged. The webhook port
// comes from the first of these sources that names a port: --webhook-port, the command's
// flags, the Deployment, and controller-runtime's default.
func (p *Project) useCommand() error {
	program, err := p.program()
	if err != nil {
		return err
	}
	args := append(p.commandArgs(), p.options.Args...)
	c := p.newComposer(nil)
	c.given = parseArguments(args, nil)
	s := &p.Subject
	if s.Webhook, err = c.webhookOfCommand(args); err != nil {
		return err
	}
	s.Command = append([]string{program}, args...)
	s.Env = slices.Concat(c.env, p.options.Env)
	return nil
}

// program returns the absolute path of the user's command.
func (p *Project) program() (string, error) {
	program := p.options.Command[0]
	if strings.ContainsRune(program, filepath.Separator) {
		program = p.path(program)
	}
	program, err := exec.LookPath(program)
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return "", fmt.Errorf("the command %s: %w; give an executable after --", p.options.Command[0], err)
	}
	return program, nil
}

// webhookOfCommand returns the same as webhook, but adds nothing to the command. The
// folder of the certificate is the one that the command names as $(CERTS), or else
// controller-runtime's default.
func (c *composer) webhookOfCommand(args []string) (subject.Webhook, error) {
	folder := c.value(c.certFlags())
	if folder == "" && c.namesCertificates(args) {
		folder = certs
	}
	w := c.webhook()
	w.Args = nil
	switch {
	case w.Port == 0 || folder == "":
		return w, nil
	case !strings.Contains(folder, certs):
		return w, fmt.Errorf("the command reads the certificate of its webhooks from %s; write '%s' in place of this folder, so that koboshi can provide tls.crt and tls.key in each run", folder, certs)
	}
	w.CertDir = folder
	return w, nil
}

// has returns the first of these flags that the program supports. If it supports none of
// them, has returns the first one among the arguments in the Pod, or "".
func (c *composer) has(names []string) string {
	for _, name := range names {
		if _, ok := c.known[name]; ok {
			return name
		}
	}
	for _, name := range names {
		if slices.ContainsFunc(c.given, func(a argument) bool { return a.name == name }) {
			return name
		}
	}
	return ""
}

func (c *composer) value(names []string) string {
	for _, a := range c.given {
		if slices.Contains(names, a.name) {
			return a.value
		}
	}
	return ""
}

// keep copies the arguments that have the same meaning outside a Pod, except flags that the user
// sets. It also leaves out words if the user gives other words.
func (c *composer) keep(overridden []string, otherWords bool) {
	replaced := slices.Concat(metricsFlags, probeFlags, electionFlags, c.certFlags(), portFlags, fileFlags, overridden, []string{electionNamespace, "kubeconfig"})
	for _, a := range c.given {
		switch {
		case a.name == "" && otherWords, a.name != "" && slices.Contains(replaced, a.name):
		case c.p.manager.inCertificates(a.value) && c.serves() && !c.p.manager.knows(a.value):
			for _, text := range a.text {
				c.args = append(c.args, c.certificates(text))
			}
		case c.p.manager.provides(a.value):
			c.args = append(c.args, c.p.manager.relocate(a)...)
		case c.p.manager.mounted(a.value):
			c.p.note("left out the argument %s of %s: the file is in a volume of its Pod (use %s to add a path on this machine)", strings.Join(a.text, " "), c.p.manager.workload, flagArgs)
		default:
			c.args = append(c.args, a.text...)
		}
	}
}

// quiet turns off the features that would conflict between two instances on one machine.
func (c *composer) quiet() {
	if name := c.has(metricsFlags); name != "" {
		c.args = append(c.args, "--"+name+"=0")
	}
	if name := c.has(probeFlags); name != "" {
		c.args = append(c.args, "--"+name+"=:0")
	}
	for _, name := range electionFlags {
		if c.known[name].Default == "true" {
			c.args = append(c.args, "--"+name+"=false")
		}
	}
}

// election returns the arguments that enable leader election outside a Pod, where
// controller-runtime cannot detect its namespace.
func (c *composer) election() []string {
	name := c.has(electionFlags)
	if name == "" {
		return nil
	}
	args := []string{"--" + name + "=true"}
	if _, ok := c.known[electionNamespace]; ok {
		return append(args, "--"+electionNamespace+"="+cmp.Or(c.p.Subject.Identity.Namespace, "default"))
	}
	if c.p.mentions("LeaderElectionNamespace") {
		return args
	}
	c.p.note("faults with two competing instances are not tried, because outside a Pod the manager does not know the namespace of its lease (to try them, give the manager a flag --%s that sets LeaderElectionNamespace)", electionNamespace)
	return nil
}

// webhook returns the port, certificates and arguments of the controller's webhooks, if
// it has any.
func (c *composer) webhook() subject.Webhook {
	if !c.serves() {
		// Without this variable, most managers would require certificates although no
		// webhook needs them.
		c.defaultEnv("ENABLE_WEBHOOKS", "false")
		return subject.Webhook{}
	}
	w := subject.Webhook{Port: c.webhookPort()}
	if c.p.manager != nil {
		w.Mounts = c.p.manager.certs
	}
	if name := c.has(portFlags); name != "" {
		w.Args = append(w.Args, "--"+name+"="+strconv.Itoa(w.Port))
	}
	switch name := c.has(c.certFlags()); {
	case name != "":
		w.CertDir = certs
		w.Args = append(w.Args, c.certArgs(name)...)
		slices.Sort(w.Args)
	case c.namesCertificates(slices.Concat(c.args, c.env, c.p.options.Args)):
		w.CertDir = certs
	default:
		w.CertDir = certs + "/" + defaultCertDir
		c.defaultEnv("TMPDIR", certs)
	}
	return w
}

func (c *composer) webhookPort() int {
	if port := c.p.options.WebhookPort; port > 0 {
		return port
	}
	flag := c.has(portFlags)
	for _, text := range []string{c.value(portFlags), c.known[flag].Default} {
		if port, err := strconv.Atoi(text); err == nil && port > 0 {
			return port
		}
	}
	if c.p.manager != nil {
		if port := c.p.manager.port("webhook"); port > 0 {
			return port
		}
	}
	return defaultPort
}

// defaultEnv sets a variable unless it is already set.
func (c *composer) defaultEnv(name, value string) {
	if !slices.ContainsFunc(slices.Concat(c.env, c.p.options.Env), func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
		c.env = append(c.env, name+"="+value)
	}
}
