package s3store

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// IsEmpty reports whether a bucket contains nothing: no object, no old version,
// no delete marker and no unfinished upload.
func (s *Store) IsEmpty(ctx context.Context, bucket string) (bool, error) {
	objects, err := s.objects(ctx, bucket, 1)
	if err != nil || len(objects) > 0 {
		return false, err
	}
	uploads, err := s.uploads(ctx, bucket, 1)
	return err == nil && len(uploads) == 0, err
}

// Empty removes at most limit items from a bucket, including old versions, delete
// markers and unfinished uploads. done is true once a listing after the last removal is
// empty. Each call lists the content again, so the next call continues after a failure
// or a crash.
//
// Empty stops at the first batch that the store partly refuses: a bucket with protected objects
// cannot be deleted, so removing the other objects would be useless.
func (s *Store) Empty(ctx context.Context, bucket string, limit int) (removed int, done bool, err error) {
	for last := ""; removed < limit; {
		first, n, err := s.emptySome(ctx, bucket, int32(min(limit-removed, maxPage)))
		removed += n
		if first == "" || err != nil {
			return removed, err == nil, err
		}
		if first == last {
			// Without this check, the loop might never end.
			return removed, false, &Error{Reason: ReasonUnexpectedResponse, Message: "the store lists an object " +
				"that it had reported as deleted: stop the program that writes to the bucket, or delete the object by hand"}
		}
		last = first
	}
	return removed, false, nil
}

// emptySome removes one page of the content and returns the first item of the page,
// or "" if the bucket is empty.
func (s *Store) emptySome(ctx context.Context, bucket string, limit int32) (first string, removed int, err error) {
	objects, err := s.objects(ctx, bucket, limit)
	if err != nil {
		return "", 0, err
	}
	if len(objects) > 0 {
		removed, err = s.deleteObjects(ctx, bucket, objects)
		return fmt.Sprintf("object %q %q", *objects[0].Key, aws.ToString(objects[0].VersionId)), removed, err
	}
	uploads, err := s.uploads(ctx, bucket, limit)
	if err != nil || len(uploads) == 0 {
		return "", 0, err
	}
	for _, upload := range uploads {
		if err = s.abort(ctx, bucket, upload); err != nil {
			break
		}
		removed++
	}
	return "upload " + *uploads[0].UploadId, removed, err
}

// objects lists some of a bucket's objects; the result is empty only if there are none.
// The listed items are versions. If the store has no versions, or misunderstands the
// request for versions, objects lists the current objects.
func (s *Store) objects(ctx context.Context, bucket string, limit int32) ([]types.ObjectIdentifier, error) {
	objects, err := s.versions(ctx, bucket, limit)
	if len(objects) > 0 || err != nil && ReasonOf(err) != ReasonUnsupported {
		return objects, err
	}
	return s.currentObjects(ctx, bucket, limit)
}

func (s *Store) versions(ctx context.Context, bucket string, limit int32) ([]types.ObjectIdentifier, error) {
	in := &s3.ListObjectVersionsInput{Bucket: &bucket, MaxKeys: &limit, EncodingType: types.EncodingTypeUrl}
	return someOf(func() (page []types.ObjectIdentifier, next string, err error) {
		out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.ListObjectVersionsOutput, error) {
			return c.ListObjectVersions(ctx, in)
		})
		if err != nil {
			return nil, "", err
		}
		name := namesOf(out.EncodingType)
		for _, v := range out.Versions {
			page = append(page, types.ObjectIdentifier{Key: name(v.Key), VersionId: v.VersionId})
		}
		for _, m := range out.DeleteMarkers {
			page = append(page, types.ObjectIdentifier{Key: name(m.Key), VersionId: m.VersionId})
		}
		in.KeyMarker, in.VersionIdMarker = name(out.NextKeyMarker), out.NextVersionIdMarker
		return page, nextPage(out.IsTruncated, in.KeyMarker, in.VersionIdMarker), nil
	})
}

func (s *Store) currentObjects(ctx context.Context, bucket string, limit int32) ([]types.ObjectIdentifier, error) {
	in := &s3.ListObjectsV2Input{Bucket: &bucket, MaxKeys: &limit, EncodingType: types.EncodingTypeUrl}
	return someOf(func() (page []types.ObjectIdentifier, next string, err error) {
		out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.ListObjectsV2Output, error) {
			return list(ctx, c, in)
		})
		if err != nil {
			return nil, "", err
		}
		name := namesOf(out.EncodingType)
		for _, o := range out.Contents {
			page = append(page, types.ObjectIdentifier{Key: name(o.Key)})
		}
		in.ContinuationToken = out.NextContinuationToken
		return page, nextPage(out.IsTruncated, in.ContinuationToken), nil
	})
}

// uploads lists some unfinished multipart uploads; the result is empty only
// if there are none, or if the store does not support them.
func (s *Store) uploads(ctx context.Context, bucket string, limit int32) ([]types.MultipartUpload, error) {
	in := &s3.ListMultipartUploadsInput{Bucket: &bucket, MaxUploads: &limit, EncodingType: types.EncodingTypeUrl}
	found, err := someOf(func() (page []types.MultipartUpload, next string, err error) {
		out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.ListMultipartUploadsOutput, error) {
			return c.ListMultipartUploads(ctx, in)
		})
		if err != nil {
			return nil, "", err
		}
		name := namesOf(out.EncodingType)
		for _, u := range out.Uploads {
			page = append(page, types.MultipartUpload{Key: name(u.Key), UploadId: u.UploadId})
		}
		in.KeyMarker, in.UploadIdMarker = name(out.NextKeyMarker), out.NextUploadIdMarker
		return page, nextPage(out.IsTruncated, in.KeyMarker, in.UploadIdMarker), nil
	})
	if ReasonOf(err) == ReasonUnsupported {
		return nil, nil
	}
	return found, err
}

// someOf requests pages until one contains an item, because a store may send an empty page
// before pages with items.
func someOf[Item any](page func() (items []Item, next string, err error)) (found []Item, err error) {
	err = eachPage(func() (next string, err error) {
		found, next, err = page()
		if len(found) > 0 {
			next = ""
		}
		return next, err
	})
	return found, err
}

// namesOf returns a function that decodes the keys of a listing. The keys are requested
// with URL encoding, because XML cannot represent every character of a key. A store
// that does not support the encoding sends the keys unencoded.
func namesOf(encoding types.EncodingType) func(*string) *string {
	if encoding != types.EncodingTypeUrl {
		return func(key *string) *string { return key }
	}
	return func(key *string) *string {
		plain, err := url.QueryUnescape(aws.ToString(key))
		if err != nil {
			return key
		}
		return &plain
	}
}

func (s *Store) abort(ctx context.Context, bucket string, upload types.MultipartUpload) error {
	_, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.AbortMultipartUploadOutput, error) {
		return c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: &bucket, Key: upload.Key, UploadId: upload.UploadId,
		})
	}, "NoSuchUpload")
	return err
}

// deleteObjects deletes objects in one batch. An object is deleted with a request of its
// own if the store does not support batches, or if XML cannot represent the object's key.
func (s *Store) deleteObjects(ctx context.Context, bucket string, objects []types.ObjectIdentifier) (removed int, err error) {
	var batch, single []types.ObjectIdentifier
	for _, o := range objects {
		if fitsXML(*o.Key) {
			batch = append(batch, o)
		} else {
			single = append(single, o)
		}
	}
	tally := refusals{asked: len(objects)}
	if len(batch) > 0 {
		out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.DeleteObjectsOutput, error) {
			return c.DeleteObjects(ctx, &s3.DeleteObjectsInput{
				Bucket: &bucket, Delete: &types.Delete{Objects: batch, Quiet: aws.Bool(true)},
			}, withMD5)
		})
		switch {
		case ReasonOf(err) == ReasonUnsupported:
			single = objects
		case err != nil:
			return 0, err
		default:
			removed = len(batch) - tally.add(out.Errors)
		}
	}
	for _, o := range single {
		_, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.DeleteObjectOutput, error) {
			return c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: o.Key, VersionId: o.VersionId})
		}, "NoSuchKey", "NoSuchVersion")
		switch {
		case ReasonOf(err) == ReasonAccessDenied:
			tally.denied++
		case err != nil:
			return removed, err
		default:
			removed++
		}
	}
	return removed, tally.err()
}

// fitsXML reports whether XML 1.0 can represent the key.
func fitsXML(key string) bool {
	return utf8.ValidString(key) && !strings.ContainsFunc(key, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
	})
}

// refusals counts the objects that a store did not delete.
type refusals struct {
	asked, denied, failed int
	// reason is the reason of the last failure other than a denial.
	reason Reason
}

// add counts the errors of a batch and returns the number of objects that
// still exist.
func (r *refusals) add(errors []types.Error) (left int) {
	before := r.denied + r.failed
	for _, e := range errors {
		switch code := aws.ToString(e.Code); code {
		case "NoSuchKey", "NoSuchVersion":
			// Another client deleted the object first.
		case "AccessDenied", "AllAccessDisabled", "InvalidRequest", "ObjectLocked":
			// Stores report the protection of a locked object with different codes.
			r.denied++
		default:
			// Another attempt may succeed, whatever the error is.
			r.failed++
			if r.reason = reasonOfCode[code]; r.reason == "" || r.reason.Terminal() {
				r.reason = ReasonUnexpectedResponse
			}
		}
	}
	return r.denied + r.failed - before
}

// err returns an error with the number of objects that were not deleted, or nil if
// there are none.
func (r *refusals) err() error {
	switch {
	case r.denied > 0:
		return &Error{Reason: ReasonAccessDenied, Message: fmt.Sprintf("the store refused to delete %d of %d objects: "+
			"they are protected by object lock, or the credentials may not delete versions; "+
			"remove the protection, wait for it to expire, or grant s3:DeleteObject and s3:DeleteObjectVersion", r.denied, r.asked)}
	case r.failed > 0:
		return &Error{Reason: r.reason, Message: fmt.Sprintf("the store failed to delete %d of %d objects", r.failed, r.asked)}
	default:
		return nil
	}
}
