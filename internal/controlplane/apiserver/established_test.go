package apiserver

import (
	"context"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestInTheInformerACRDIsLongEstablishedAndNothingElseChanges(t *testing.T) {
	now := metav1.Now()
	crd := &apiextensionsv1.CustomResourceDefinition{Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, LastTransitionTime: now},
		{Type: apiextensionsv1.Established, LastTransitionTime: now},
	}}}
	got, err := longEstablished(crd)
	if err != nil {
		t.Fatal(err)
	}
	conditions := got.(*apiextensionsv1.CustomResourceDefinition).Status.Conditions
	if age := now.Sub(conditions[1].LastTransitionTime.Time); age < 2*time.Second {
		t.Errorf("the CRD looks established for %v; below 2 s, upstream delays each create", age)
	}
	if !conditions[0].LastTransitionTime.Equal(&now) {
		t.Error("another condition was changed too")
	}
	if got, err := longEstablished("tombstone"); got != "tombstone" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTheServerDoesNotWriteBackTheTimeThatItsInformerTells(t *testing.T) {
	stored := metav1.Now()
	shifted := metav1.NewTime(stored.Add(-peersHaveLearned))
	crd := func(status apiextensions.ConditionStatus, at metav1.Time) *apiextensions.CustomResourceDefinition {
		return &apiextensions.CustomResourceDefinition{Status: apiextensions.CustomResourceDefinitionStatus{Conditions: []apiextensions.CustomResourceDefinitionCondition{
			{Type: apiextensions.Established, Status: status, LastTransitionTime: at},
		}}}
	}
	for name, test := range map[string]struct {
		who, subresource string
		old              apiextensions.ConditionStatus
		want             metav1.Time
	}{
		"the server itself":        {user.APIServerUser, "status", apiextensions.ConditionTrue, stored},
		"a transition":             {user.APIServerUser, "status", apiextensions.ConditionFalse, shifted},
		"somebody else's business": {"alice", "status", apiextensions.ConditionTrue, shifted},
		"no status":                {user.APIServerUser, "", apiextensions.ConditionTrue, shifted},
	} {
		updated := crd(apiextensions.ConditionTrue, shifted)
		a := admission.NewAttributesRecord(updated, crd(test.old, stored), schema.GroupVersionKind{}, "", "x", schema.GroupVersionResource{},
			test.subresource, admission.Update, &metav1.UpdateOptions{}, false, &user.DefaultInfo{Name: test.who})
		if err := (keepTransitions{admission.NewHandler(admission.Update)}).Admit(context.Background(), a, nil); err != nil {
			t.Error(err)
		}
		if got := updated.Status.Conditions[0].LastTransitionTime; !got.Equal(&test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
