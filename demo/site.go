package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	siteDir = "operators/markdownview"
	book    = "docs/guide"
	// japanese contains those pages of the book that exist in Japanese.
	japanese = "docs/guide.ja"

	viewerImage   = "ghcr.io/koboshi-dev/markdownview"
	viewerTag     = viewerImage + ":v0.1.0"
	viewerProgram = viewerImage + "=" + siteDir + "/bin/viewer"
	editedPage    = "start/why.md"
)

func (d *demo) installSites(ctx context.Context) error {
	say("Another CRD and its operator:")
	if err := d.kubectl(ctx, "apply", "--server-side", "-f", siteDir+"/config/crd/bases"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "wait", "--for=condition=Established", "crd/markdownviews.view.koboshi.dev"); err != nil {
		return err
	}
	show("manager --viewer-image=" + viewerTag)
	_, err := d.start("markdownview", []string{"KUBECONFIG=" + d.path("plane", "kubeconfig"), "ENABLE_WEBHOOKS=false"}, nil,
		filepath.Join(siteDir, "bin", "manager"), "--viewer-image="+viewerTag)
	return err
}

// publishHandbook makes a site from this project's own handbook.
func (d *demo) publishHandbook(ctx context.Context) error {
	if err := d.installSites(ctx); err != nil {
		return err
	}
	manifest, files, err := handbook()
	if err != nil {
		return err
	}
	file := d.path("handbook.json")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		return err
	}
	say(fmt.Sprintf("The %d files of %s in one resource, served by two viewers:", files, book))
	err = d.timed("from apply to the first page served", func() error {
		if err := d.kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(stateDir, "handbook.json")); err != nil {
			return err
		}
		if d.siteURL, err = d.reachable(ctx, "viewer-handbook"); err != nil {
			return err
		}
		return d.expectPage(ctx, "", "<h1")
	})
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "wait", "--for=condition=Ready", "mdv/handbook", "--timeout=60s"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "get", "mdv"); err != nil {
		return err
	}
	say("Its viewers are real processes, each with its own address; the nginx Pods\nare simulated:")
	if err := d.kubectl(ctx, "get", "pods", "-o", "wide"); err != nil {
		return err
	}
	return d.kubectl(ctx, "logs", "deployment/viewer-handbook", "--tail=2")
}

func (d *demo) editHandbook(ctx context.Context) error {
	say("One page is edited. New viewers start next to the old ones, and when all of\nthem are ready, the Service switches over in one step:")
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"markdowns": map[string]string{
		editedPage: "# Edited\n\nThis page was changed while it was being read.\n",
	}}})
	if err != nil {
		return err
	}
	url := strings.TrimSuffix(editedPage, ".md") + ".html"
	return d.timed("from the edit to the page that shows it", func() error {
		if err := d.kubectl(ctx, "patch", "mdv", "handbook", "--type=merge", "-p", string(patch)); err != nil {
			return err
		}
		return d.expectPage(ctx, url, "This page was changed while it was being read.")
	})
}

// handbook returns a MarkdownView that contains all files of the handbook in both languages.
func handbook() (manifest []byte, files int, err error) {
	markdowns, err := pages(book)
	if err != nil {
		return nil, 0, err
	}
	translated, err := pages(japanese)
	if err != nil {
		return nil, 0, err
	}
	addJapanese(markdowns, translated)
	manifest, err = json.Marshal(map[string]any{
		"apiVersion": "view.koboshi.dev/v1",
		"kind":       "MarkdownView",
		"metadata":   map[string]any{"name": "handbook"},
		"spec":       map[string]any{"replicas": 2, "title": "Koboshi", "markdowns": markdowns},
	})
	return manifest, len(markdowns), err
}

// pages reads the files of a book, except Go code.
func pages(folder string) (map[string]string, error) {
	all := map[string]string{}
	root := os.DirFS(folder)
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) == ".go" {
			return err
		}
		text, err := fs.ReadFile(root, path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the handbook: %w", err)
	}
	return all, nil
}

// addJapanese adds the Japanese pages to the book below ja/, and to its table of contents
// before the glossary.
func addJapanese(markdowns, translated map[string]string) {
	const summary = "SUMMARY.md"
	part := strings.ReplaceAll(translated[summary], "](", "](ja/")
	markdowns[summary] = strings.Replace(markdowns[summary], "\n---\n", "\n"+part+"\n---\n", 1)
	for path, text := range translated {
		if path != summary {
			// In the repository, the two languages are in neighboring folders.
			markdowns["ja/"+path] = strings.ReplaceAll(text, "](../../guide/", "](../../")
		}
	}
}

// reachable waits for the address that the plane forwards to a Service, and returns that
// address.
func (d *demo) reachable(ctx context.Context, service string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	for {
		out, err := d.ask(ctx, "", "get", "events", "--field-selector=reason=Reachable,involvedObject.name="+service,
			"-o", "jsonpath={.items[0].message}")
		for word := range strings.FieldsSeq(out) {
			if err == nil && strings.HasPrefix(word, "http://") {
				return word, nil
			}
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return "", fmt.Errorf("service %s is not reachable after %v: %s", service, stepTimeout, out)
		}
	}
}

// expectPage waits until a page of the site is served and contains the text.
func (d *demo) expectPage(ctx context.Context, page, text string) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	url := d.siteURL + "/" + page
	show("curl " + url)
	for {
		body, err := get(ctx, url)
		if err == nil && strings.Contains(body, text) {
			return nil
		}
		select {
		case <-time.After(pollInterval / 5):
		case <-ctx.Done():
			return fmt.Errorf("%s does not show %q after %v: %w", url, text, stepTimeout, err)
		}
	}
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", response.Status)
	}
	return string(body), err
}
