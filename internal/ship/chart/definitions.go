package chart

// addDefinitions makes the CRDs part of the release, so that helm upgrade changes them. Helm never
// upgrades those in a chart's folder crds.
func (b *builder) addDefinitions() error {
	all := b.find(definitionKind.Group, definitionKind.Kind)
	if len(all) == 0 {
		return nil
	}
	b.values.add("crds.enabled", "Installs and upgrades the CRDs. A second release needs false.", true, boolean())
	b.values.add("crds.keep", "Keeps the CRDs, and with them all custom resources, when the release is uninstalled.", true, boolean())
	for _, t := range all {
		t.only(".Values.crds.enabled")
		annotations := fields(fields(t.object.Object, "metadata"), "annotations")
		b.field(annotations, guarded(".Values.crds.keep", "helm.sh/resource-policy: keep"))
	}
	return nil
}
