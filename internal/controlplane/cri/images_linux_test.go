package cri

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestMappedImagesArePresent(t *testing.T) {
	p := newPlane(t)
	ids := map[string]string{}
	for name, uid := range map[string]int64{testImage: 65532, "other": 1234, "docker.io/library/other:v3": 1234} {
		spec := &runtimeapi.ImageSpec{Image: name}
		ref, err := p.PullImage(t.Context(), spec, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = ref
		// From here on, the kubelet uses the returned reference, with or without the name.
		for _, spec := range []*runtimeapi.ImageSpec{spec, {Image: ref}, {Image: ref, UserSpecifiedImage: name}} {
			answer, err := p.ImageStatus(t.Context(), spec, false)
			image := answer.GetImage()
			if err != nil || image.GetId() != ref || image.GetUid().GetValue() != uid || image.GetSize() == 0 || !image.GetPinned() {
				t.Errorf("%v: %v, %v", spec, image, err)
			}
		}
	}
	if ids["other"] != ids["docker.io/library/other:v3"] || ids["other"] == ids[testImage] {
		t.Errorf("IDs %v", ids)
	}
	list, err := p.ListImages(t.Context(), nil)
	if err != nil || len(list) != 2 {
		t.Errorf("%d images, %v", len(list), err)
	}
	info, err := p.ImageFsInfo(t.Context())
	if err != nil || len(info.GetImageFilesystems()) != 1 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestUnmappedImagesSayWhatToDo(t *testing.T) {
	p := newPlane(t)
	spec := &runtimeapi.ImageSpec{Image: "example.org/program:v2"}
	oneLine(t, "another tag", "no program is given for image example.org/program:v2: use koboshi up --run example.org/program:v2=PATH", func() error {
		_, err := p.PullImage(t.Context(), spec, nil, nil)
		return err
	})
	if answer, err := p.ImageStatus(t.Context(), spec, false); err != nil || answer.GetImage() != nil {
		t.Errorf("%v, %v", answer, err)
	}
	if list, err := p.ListImages(t.Context(), &runtimeapi.ImageFilter{Image: spec}); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}
