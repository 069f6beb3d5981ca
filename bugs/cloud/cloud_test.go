package cloud

import (
	"errors"
	"net/http/httptest"
	"testing"
)

func TestCreatingTwiceMakesTwoVolumes(t *testing.T) {
	server := httptest.NewServer(new(Server).Handler())
	defer server.Close()
	c := &Client{URL: server.URL}
	first, err := c.Create(t.Context(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Create(t.Context(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	if first.ID == second.ID {
		t.Errorf("both volumes have the ID %s", first.ID)
	}
	if all, err := c.List(t.Context(), "a"); err != nil || len(all) != 2 {
		t.Errorf("the cloud lists %v, %v; want two volumes", all, err)
	}
	if all, err := c.List(t.Context(), "b"); err != nil || len(all) != 0 {
		t.Errorf("the cloud lists %v, %v for another name; want no volumes", all, err)
	}
}

func TestADeletedVolumeIsGoneAndCanBeDeletedAgain(t *testing.T) {
	server := httptest.NewServer(new(Server).Handler())
	defer server.Close()
	c := &Client{URL: server.URL}
	v, err := c.Create(t.Context(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Delete(t.Context(), v.ID); err != nil {
			t.Errorf("deleting %s: %v", v.ID, err)
		}
	}
	if _, err := c.Get(t.Context(), v.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("getting the deleted volume returned %v, want ErrNotFound", err)
	}
}
