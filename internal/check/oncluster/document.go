package oncluster

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/report"
)

const (
	// Version is the version of the documents. Both sides must have the same.
	Version = 1
	// documentKey is the key of a document in a ConfigMap, and so the name of its file in a volume.
	documentKey = "document.json.gz"
	// largestPiece is the size of the largest piece of a document. An object may have 1 MiB, with its
	// metadata.
	largestPiece = 900 << 10
	// largestDocument limits what is read from the cluster, after decompression.
	largestDocument = 512 << 20
)

// Document is the result that a Pod stores.
type Document struct {
	Version int `json:"version"`
	// Error is the reason why the Pod could not do its part; then the document has nothing else.
	Error string `json:"error,omitempty"`
	Plan  *Plan  `json:"plan,omitempty"`
	Part  *Part  `json:"part,omitempty"`
}

// Plan is the plan that the first Pod has learnt, and how it learnt it.
type Plan struct {
	// Profile is the profile in which the plan was learnt, and ProfileReason why it was chosen; empty if the
	// user chose it.
	Profile       string `json:"profile"`
	ProfileReason string `json:"profileReason,omitempty"`
	// Faults is the queue of all shards together.
	Faults  []plan.Planned `json:"faults"`
	Skipped int            `json:"skipped"`
}

// Part is the result of one shard.
type Part struct {
	Report *report.Report `json:"report"`
	// Profile is the profile of the shard's planes.
	Profile string `json:"profile"`
	// Faults lists the IDs of the faults of the shard: its part of the plan, and the second kills that
	// recoveries from these faults have shown to be worth a run.
	Faults []string `json:"faults"`
	// Findings has the files of the findings, by name.
	Findings map[string][]byte `json:"findings,omitempty"`
}

// pack compresses a document.
func pack(d Document) ([]byte, error) {
	d.Version = Version
	data, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err = w.Write(data)
	err = errors.Join(err, w.Close()) // this writes the rest
	return b.Bytes(), err
}

// unpack reads what pack returned.
func unpack(packed []byte) (d Document, err error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return d, err
	}
	data, err := io.ReadAll(io.LimitReader(r, largestDocument))
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return d, err
	}
	if d.Version != Version {
		return d, fmt.Errorf("the koboshi in the image writes version %d of its results, and this one reads only %d; make the image again with koboshi ship --check-image", d.Version, Version)
	}
	return d, nil
}

// piecesOf divides a document among ConfigMaps that belong to one Pod.
func piecesOf(d Document, by Identity) (all []*corev1.ConfigMap, err error) {
	packed, err := pack(d)
	if err != nil {
		return nil, fmt.Errorf("writing the result: %w", err)
	}
	pieces := slices.Collect(slices.Chunk(packed, largestPiece))
	for i, piece := range pieces {
		all = append(all, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: by.Namespace, Name: fmt.Sprintf("%s-%d-%s-%d", by.Job, by.Index, by.Pod[:min(len(by.Pod), 8)], i),
				Labels:          map[string]string{managedBy: koboshi, jobLabel: by.Job, indexLabel: strconv.Itoa(by.Index)},
				Annotations:     map[string]string{podAnnotation: by.Pod, pieceAnnotation: fmt.Sprintf("%d/%d", i+1, len(pieces))},
				OwnerReferences: []metav1.OwnerReference{ownedBy(by.Job, by.JobUID)},
			},
			BinaryData: map[string][]byte{documentKey: piece},
		})
	}
	return all, nil
}

// assemble puts the documents of a Job together, by index. It skips a document with missing pieces, because its
// Pod ended while it wrote them. If two Pods of an index have written a document, one of these is used.
func assemble(pieces []corev1.ConfigMap) (map[int]Document, error) {
	type attempt struct {
		index int
		pod   string
	}
	byAttempt := map[attempt][]corev1.ConfigMap{}
	for _, piece := range pieces {
		index, err := strconv.Atoi(piece.Labels[indexLabel])
		if err != nil {
			continue
		}
		key := attempt{index, piece.Annotations[podAnnotation]}
		byAttempt[key] = append(byAttempt[key], piece)
	}
	all := map[int]Document{}
	for key, pieces := range byAttempt {
		packed, complete := joined(pieces)
		if !complete {
			continue
		}
		d, err := unpack(packed)
		if err != nil {
			return nil, fmt.Errorf("reading the result of Pod %s: %w", key.pod, err)
		}
		if known, ok := all[key.index]; !ok || known.Error != "" {
			all[key.index] = d
		}
	}
	return all, nil
}

// joined joins the pieces of a document. complete reports whether there are all of them.
func joined(pieces []corev1.ConfigMap) (packed []byte, complete bool) {
	number := func(piece corev1.ConfigMap) (i, of int) {
		left, right, _ := strings.Cut(piece.Annotations[pieceAnnotation], "/")
		i, _ = strconv.Atoi(left)
		of, _ = strconv.Atoi(right)
		return i, of
	}
	slices.SortFunc(pieces, func(a, b corev1.ConfigMap) int {
		left, _ := number(a)
		right, _ := number(b)
		return cmp.Compare(left, right)
	})
	for n, piece := range pieces {
		if i, of := number(piece); i != n+1 || of != len(pieces) {
			return nil, false
		}
		packed = append(packed, piece.BinaryData[documentKey]...)
	}
	return packed, true
}
