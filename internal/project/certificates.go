package project

import (
	"path"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// serves reports whether the controller has webhooks, so that the lab makes a certificate.
func (c *composer) serves() bool {
	return conversion(c.p.Subject.Webhooks) || conversion(c.p.Subject.Install)
}

// namesCertificates reports whether a text or the user's environment contains $(CERTS).
func (c *composer) namesCertificates(texts []string) bool {
	return slices.ContainsFunc(slices.Concat(texts, c.p.options.Env), func(text string) bool { return strings.Contains(text, certs) })
}

// certFlags returns the flags that name the folder or the file of the webhook's certificate:
// the usual ones, and those that the program's help lists.
func (c *composer) certFlags() []string {
	flags := slices.Clone(certFlags)
	for _, name := range sorted(c.known) {
		if slices.Contains(flags, name) || slices.Contains(fileFlags, name) {
			continue
		}
		if isCertFolder(name) || c.keyFlag(name) != "" {
			flags = append(flags, name)
		}
	}
	return flags
}

// isCertFolder reports whether a flag, judging by its name, names a folder with
// certificates for serving, such as tls-cert-dir or webhookCertsDirectory.
func isCertFolder(name string) bool {
	name = strings.ToLower(name)
	for _, other := range []string{"metrics", "client", "ca-", "etcd", "trust"} {
		if strings.Contains(name, other) {
			return false
		}
	}
	if !strings.Contains(name, "cert") && !strings.Contains(name, "tls") {
		return false
	}
	return slices.ContainsFunc([]string{"dir", "directory", "folder"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// keyFlag returns the flag for the private key that belongs to a flag for a certificate file, such
// as tls-private-key-file for tls-cert-file. It returns "" if the program has no such flag.
func (c *composer) keyFlag(name string) string {
	lower := strings.ToLower(name)
	if strings.Contains(lower, "metrics") || strings.Contains(lower, "client") || !strings.Contains(lower, "cert") {
		return ""
	}
	for _, key := range []string{"private-key", "key", "privateKey", "Key", "PrivateKey"} {
		for _, cert := range []string{"certificate", "cert", "Certificate", "Cert"} {
			other := strings.Replace(name, cert, key, 1)
			if _, known := c.known[other]; known && other != name {
				return other
			}
		}
	}
	return ""
}

// certArgs returns the arguments with which a flag of certFlags names the certificate in
// $(CERTS).
func (c *composer) certArgs(name string) []string {
	if key := c.keyFlag(name); key != "" {
		return []string{"--" + name + "=" + certs + "/tls.crt", "--" + key + "=" + certs + "/tls.key"}
	}
	args := []string{"--" + name + "=" + certs}
	for flag, file := range map[string]string{"webhook-cert-name": "tls.crt", "webhook-cert-key": "tls.key"} {
		if info, ok := c.known[flag]; ok && info.Default != file {
			args = append(args, "--"+flag+"="+file)
		}
	}
	return args
}

// certificates replaces the folder of a certificate volume with $(CERTS), if the lab makes a
// certificate.
func (c *composer) certificates(text string) string {
	if !c.serves() {
		return text
	}
	for _, folder := range c.p.manager.certs {
		if name, value, ok := strings.Cut(text, "="); ok && within(value, folder) && !c.p.manager.knows(value) {
			return name + "=" + certs + strings.TrimPrefix(value, strings.TrimSuffix(folder, "/"))
		}
		if within(text, folder) && !c.p.manager.knows(text) {
			return certs + strings.TrimPrefix(text, strings.TrimSuffix(folder, "/"))
		}
	}
	return text
}

// inCertificates reports whether a path is in a volume with certificates.
func (m *manager) inCertificates(file string) bool {
	return slices.ContainsFunc(m.certs, func(folder string) bool { return within(file, path.Clean(folder)) })
}

// relocate returns an argument that names a file in a volume. A relative path becomes absolute,
// because the process starts in another folder.
func (m *manager) relocate(a argument) []string {
	texts := slices.Clone(a.text)
	if !path.IsAbs(a.value) {
		last := &texts[len(texts)-1]
		*last = strings.TrimSuffix(*last, a.value) + m.absolute(a.value)
	}
	return subject.Relocate(texts, m.files)
}
