/*
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package v1alpha8

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
)

// ConvertTo converts an object of this version to the hub version.
func (obj *Exemplar) ConvertTo(hub conversion.Hub) error {
	dst, ok := hub.(*galleryv1alpha7.Exemplar)
	if !ok {
		return fmt.Errorf("converting to the hub version: it is %T", hub)
	}
	dst.ObjectMeta = obj.ObjectMeta
	if err := copyExemplarFields(&dst.Spec, &obj.Spec); err != nil {
		return err
	}
	// Convert here what differs in the spec. What the hub version cannot express must be kept
	// in an annotation, because otherwise it would be lost when the object is stored.
	return copyExemplarFields(&dst.Status, &obj.Status)
}

// ConvertFrom converts an object of the hub version to this version.
func (obj *Exemplar) ConvertFrom(hub conversion.Hub) error {
	src, ok := hub.(*galleryv1alpha7.Exemplar)
	if !ok {
		return fmt.Errorf("converting from the hub version: it is %T", hub)
	}
	obj.ObjectMeta = src.ObjectMeta
	if err := copyExemplarFields(&obj.Spec, &src.Spec); err != nil {
		return err
	}
	// Convert here what differs in the spec.
	return copyExemplarFields(&obj.Status, &src.Status)
}

// copyExemplarFields copies the fields that have the same JSON name in both versions. If
// such a field has another type, the conversion fails.
func copyExemplarFields(dst, src any) error {
	data, err := json.Marshal(src)
	if err != nil {
		return fmt.Errorf("converting: %w", err)
	}
	if err := json.Unmarshal(data, dst); err != nil {
		return fmt.Errorf("converting: %w", err)
	}
	return nil
}
