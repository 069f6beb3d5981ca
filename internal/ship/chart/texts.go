package chart

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	texttemplate "text/template"
)

//go:embed text
var textFiles embed.FS

// facts holds the values that are filled into the templates of the texts.
type facts struct {
	Name, Version, AppVersion, Image string
	// Built is the tag and the digest of the image.
	Built string
	// Namespace is the namespace of config/default.
	Namespace string
	// Most is the largest number of characters in the prefix of all names.
	Most     int
	Prefixed bool
	Scoped   bool
	CRDs     bool
	// Secrets are the Secrets that cert-manager makes, and Workload is the manager's, as kubectl
	// names it.
	Secrets  []string
	Workload string
	Values   []valueRow
	Overlay  string
}

// valueRow is a line of the README's table.
type valueRow struct{ Path, Default, Comment string }

// writeTexts adds the files that are not objects.
func (b *builder) writeTexts(c *Chart) (err error) {
	f, err := b.facts(c)
	if err != nil {
		return err
	}
	for file, source := range map[string]string{
		chartFile: "Chart.yaml", "README.md": "README.md", "templates/NOTES.txt": "NOTES.txt", "templates/_helpers.tpl": "helpers.tpl",
	} {
		if c.Files[file], err = filled(source, f); err != nil {
			return err
		}
	}
	header, err := filled("values.yaml", f)
	if err != nil {
		return err
	}
	if c.Files[valuesFile], err = b.values.yaml(string(header)); err != nil {
		return err
	}
	c.Files[schemaFile], err = indentedJSON(b.values.schema("Values of the chart " + b.name))
	return err
}

func (b *builder) facts(c *Chart) (facts, error) {
	repository, built := splitImage(b.Image)
	fullname := `{{ include "` + b.name + `.fullname" . }}`
	var secrets []string
	for _, secret := range b.issued() {
		secrets = append(secrets, strings.ReplaceAll(secret, anyName, fullname))
	}
	f := facts{
		Name: c.Name, Version: c.Version, AppVersion: b.Tag, Image: repository, Built: built, Namespace: b.namespace,
		Most: max(63-b.longest, 16), Prefixed: b.prefix != "", Scoped: b.WatchNamespaces != "", Secrets: secrets,
		Workload: strings.ToLower(b.manager.object.GetKind()) + "/" + strings.ReplaceAll(b.readable(b.manager.object.GetName()), anyName, fullname),
		Overlay:  Overlay, CRDs: len(b.find(definitionKind.Group, definitionKind.Kind)) > 0,
	}
	for _, v := range b.values {
		text, err := indentedJSON(v.content)
		if err != nil {
			return f, fmt.Errorf("writing the value %s: %w", v.path, err)
		}
		var flat bytes.Buffer
		if err := json.Compact(&flat, text); err != nil {
			return f, err
		}
		f.Values = append(f.Values, valueRow{v.path, flat.String(), strings.ReplaceAll(v.comment, "|", `\|`)})
	}
	return f, nil
}

// filled returns a text. Its actions are in brackets, because braces are Helm's.
func filled(file string, f facts) ([]byte, error) {
	t, err := texttemplate.New(path.Base(file)).Delims("[[", "]]").ParseFS(textFiles, "text/"+file)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, f)
	return out.Bytes(), err
}
