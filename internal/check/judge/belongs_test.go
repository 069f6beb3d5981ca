package judge

import "testing"

func TestAnObjectBelongsToAResourceByOwnerLabelOrReferenceButNotByAWord(t *testing.T) {
	const example = `Widget.x default/example {"metadata":{"uid":"00000000-0000-4000-8000-000000000001"}}`
	for name, tt := range map[string]struct {
		resource, object string
		want             bool
	}{
		"an owner":                        {example, `ConfigMap default/x {"metadata":{"ownerReferences":[{"kind":"Widget","name":"example","uid":"00000000-0000-4000-8000-000000000001"}]}}`, true},
		"an owner of the same name":       {example, `ConfigMap default/x {"metadata":{"ownerReferences":[{"kind":"Widget","name":"example","uid":"other"}]}}`, false},
		"a label":                         {example, `ConfigMap default/x {"metadata":{"labels":{"widget":"example"}}}`, true},
		"a label with the namespace":      {example, `ConfigMap default/x {"metadata":{"labels":{"widget":"default.example"}}}`, true},
		"an annotation":                   {example, `ConfigMap default/x {"metadata":{"annotations":{"x/owner":"default/example"}}}`, true},
		"a field with a reference":        {example, `Other.y x {"spec":{"widgetRef":{"name":"example"}}}`, true},
		"a UID":                           {example, `ConfigMap default/x {"data":{"ownerUID":"00000000-0000-4000-8000-000000000001"}}`, true},
		"the resource refers to it":       {`Widget.x default/example {"spec":{"secretName":"login"}}`, `Secret default/login {}`, true},
		"the status refers to it":         {`Widget.x default/example {"status":{"configMapRef":"made-1"}}`, `ConfigMap default/made-1 {}`, true},
		"a derived name":                  {`Widget.x default/widget-sample {}`, `ConfigMap default/widget-sample-config {}`, true},
		"the same name":                   {`Widget.x default/widget-sample {}`, `ConfigMap default/widget-sample {}`, true},
		"a domain":                        {example, `ConfigMap default/x {"data":{"host":"www.example.com"}}`, false},
		"a word":                          {example, `ConfigMap default/x {"data":{"text":"this is an example"}}`, false},
		"a value that is the word":        {example, `ConfigMap default/x {"data":{"mode":"example"}}`, false},
		"a name with a common word":       {example, `ConfigMap default/example-operator-config {}`, false},
		"a longer name that begins alike": {`Widget.x default/widget-sample {}`, `ConfigMap default/widget-samples {}`, false},
		"the resource has such a word":    {`Widget.x default/a {"spec":{"text":"default"}}`, `Namespace default {}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, resource := object(t, tt.resource)
			_, other := object(t, tt.object)
			if got := belongs(other, resource); got != tt.want {
				t.Errorf("belongs is %t", got)
			}
		})
	}
}

func TestAPolicyMayKeepWhatTheControllerMade(t *testing.T) {
	for text, want := range map[string]bool{
		`{"reclaimPolicy":"Retain"}`: true, `{"deletionPolicy":"Orphan"}`: true, `{"policy":{"onDelete":"do-not-delete"}}`: true,
		`{"deletionPolicy":"Abandon"}`: true, `{"deletionPolicy":"Preserve"}`: true, `{"cleanup":"Never"}`: true, `{"prune":false}`: true,
		`{"preserveOnDelete":true}`: true, `{"keepVolumes":"true"}`: true, `{"cascade":"disabled"}`: true, `{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain"}}`: true,
		`{"deletionPolicy":"Snapshot"}`: true,
		`{"reclaimPolicy":"Delete"}`:    false, `{"prune":true}`: false, `{"preserveOnDelete":false}`: false, `{"mode":"never"}`: false, `{"enabled":false}`: false,
		`{"text":"keep this in mind"}`: false, `{"keepVolumes":"false"}`: false, `{}`: false,
	} {
		_, resource := object(t, `Widget.x default/w {"spec":`+text+`}`)
		if got := keeps(resource); got != want {
			t.Errorf("keeps(%s) = %t", text, got)
		}
	}
	_, annotated := object(t, `Widget.x default/w {"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`)
	if !keeps(annotated) {
		t.Error("an annotation is not looked at")
	}
}
