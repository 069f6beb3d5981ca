package project

import "fmt"

// Check returns an error if one option would have no effect because of another. It reads
// no files.
func (o Options) Check() error {
	for _, useless := range []struct {
		is   bool
		text string
	}{
		{len(o.Values) > 0 && o.Helm == "", flagValues + " names values for a chart, but there is no chart; name it with " + flagHelm + ", or omit " + flagValues},
		{len(o.Set) > 0 && o.Helm == "", flagSet + " sets a value of a chart, but there is no chart; name it with " + flagHelm + ", or omit " + flagSet},
		{o.Kustomization != "" && o.Helm != "", flagKustomization + " and " + flagHelm + " both name a complete installation; omit one of them"},
		{o.Kustomization != "" && len(o.Manifests) > 0, flagKustomization + " and " + flagManifests + " both name a complete installation; omit one of them, or name the kustomization with " + flagManifests},
		{o.Main != "" && len(o.Command) > 0, flagMain + " names the manager to build, but the command after -- is started instead; omit one of them"},
	} {
		if useless.is {
			return fmt.Errorf("%s", useless.text)
		}
	}
	return checkSettings(o.Set)
}
