package s3store

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	v1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// A store sends one of these codes if the bucket has no configuration of the requested
// kind.
const (
	codeNoObjectLock        = "ObjectLockConfigurationNotFoundError"
	codeNoEncryption        = "ServerSideEncryptionConfigurationNotFoundError"
	codeNoPublicAccessBlock = "NoSuchPublicAccessBlockConfiguration"
)

type versioning v1.VersioningState

func declaredVersioning(spec *v1.StorageBucketSpec) value {
	if spec.Versioning == "" {
		return nil
	}
	return versioning(spec.Versioning)
}

func (v versioning) heldBy(ctx context.Context, s *Store, bucket string) (bool, error) {
	out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.GetBucketVersioningOutput, error) {
		return c.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &bucket})
	})
	if err != nil {
		return false, err
	}
	// A bucket that was never versioned behaves like a bucket whose versioning is
	// suspended: it creates no versions.
	status := out.Status
	if status == "" {
		status = types.BucketVersioningStatusSuspended
	}
	return string(status) == string(v), nil
}

func (v versioning) putInto(ctx context.Context, s *Store, bucket string) error {
	_, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.PutBucketVersioningOutput, error) {
		return c.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
			Bucket:                  &bucket,
			VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatus(v)},
		}, withMD5)
	})
	return err
}

func suspendVersioning(ctx context.Context, s *Store, bucket string, _ []string) error {
	suspended := versioning(v1.VersioningSuspended)
	held, err := suspended.heldBy(ctx, s, bucket)
	if held || err != nil {
		return err
	}
	return suspended.putInto(ctx, s, bucket)
}

type objectLock v1.ObjectLock

func declaredObjectLock(spec *v1.StorageBucketSpec) value {
	if spec.ObjectLock == nil {
		return nil
	}
	return objectLock(*spec.ObjectLock)
}

func (l objectLock) heldBy(ctx context.Context, s *Store, bucket string) (bool, error) {
	actual, err := readObjectLock(ctx, s, bucket)
	if err != nil || actual == nil || actual.ObjectLockEnabled != types.ObjectLockEnabledEnabled {
		return false, err
	}
	if actual.Rule == nil || actual.Rule.DefaultRetention == nil {
		return l.DefaultRetention == nil, nil
	}
	if l.DefaultRetention == nil {
		return false, nil
	}
	has, want := actual.Rule.DefaultRetention, l.retention()
	// Either days or years is set; the unset field may be absent or zero.
	return has.Mode == want.Mode && aws.ToInt32(has.Days) == aws.ToInt32(want.Days) &&
		aws.ToInt32(has.Years) == aws.ToInt32(want.Years), nil
}

func readObjectLock(ctx context.Context, s *Store, bucket string) (*types.ObjectLockConfiguration, error) {
	out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.GetObjectLockConfigurationOutput, error) {
		return c.GetObjectLockConfiguration(ctx, &s3.GetObjectLockConfigurationInput{Bucket: &bucket})
	}, codeNoObjectLock)
	if out == nil {
		return nil, err
	}
	return out.ObjectLockConfiguration, nil
}

// retention returns the declared retention as the S3 type, or nil if no retention is
// declared.
func (l objectLock) retention() *types.DefaultRetention {
	if l.DefaultRetention == nil {
		return nil
	}
	return &types.DefaultRetention{
		Mode:  types.ObjectLockRetentionMode(strings.ToUpper(l.DefaultRetention.Mode)),
		Days:  l.DefaultRetention.Days,
		Years: l.DefaultRetention.Years,
	}
}

func (l objectLock) putInto(ctx context.Context, s *Store, bucket string) error {
	lock := &types.ObjectLockConfiguration{ObjectLockEnabled: types.ObjectLockEnabledEnabled}
	if retention := l.retention(); retention != nil {
		lock.Rule = &types.ObjectLockRule{DefaultRetention: retention}
	}
	_, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.PutObjectLockConfigurationOutput, error) {
		return c.PutObjectLockConfiguration(ctx, &s3.PutObjectLockConfigurationInput{
			Bucket: &bucket, ObjectLockConfiguration: lock,
		}, withMD5)
	})
	return err
}

// removeDefaultRetention removes only the retention, because object lock itself cannot
// be turned off.
func removeDefaultRetention(ctx context.Context, s *Store, bucket string, _ []string) error {
	actual, err := readObjectLock(ctx, s, bucket)
	if err != nil || actual == nil || actual.Rule == nil {
		return err
	}
	return objectLock{}.putInto(ctx, s, bucket)
}

type encryption v1.Encryption

func declaredEncryption(spec *v1.StorageBucketSpec) value {
	if spec.Encryption == nil {
		return nil
	}
	return encryption(*spec.Encryption)
}

func (e encryption) heldBy(ctx context.Context, s *Store, bucket string) (bool, error) {
	rules, err := readEncryption(ctx, s, bucket)
	if err != nil || len(rules) != 1 || rules[0].ApplyServerSideEncryptionByDefault == nil {
		return false, err
	}
	by := rules[0].ApplyServerSideEncryptionByDefault
	return string(by.SSEAlgorithm) == e.Algorithm && sameKey(e.KMSKeyID, aws.ToString(by.KMSMasterKeyID)) &&
		aws.ToBool(rules[0].BucketKeyEnabled) == e.BucketKey, nil
}

// sameKey compares a declared key with the key in the store, which may be a complete
// ARN. If no key is declared, only the account's own key matches.
func sameKey(declared, actual string) bool {
	if declared == "" {
		return actual == "" || strings.HasSuffix(actual, "alias/aws/s3")
	}
	return actual == declared ||
		strings.HasPrefix(actual, "arn:") && (strings.HasSuffix(actual, ":key/"+declared) ||
			strings.HasPrefix(declared, "alias/") && strings.HasSuffix(actual, ":"+declared))
}

func readEncryption(ctx context.Context, s *Store, bucket string) ([]types.ServerSideEncryptionRule, error) {
	out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.GetBucketEncryptionOutput, error) {
		return c.GetBucketEncryption(ctx, &s3.GetBucketEncryptionInput{Bucket: &bucket})
	}, codeNoEncryption)
	if out == nil || out.ServerSideEncryptionConfiguration == nil {
		return nil, err
	}
	return out.ServerSideEncryptionConfiguration.Rules, nil
}

func (e encryption) putInto(ctx context.Context, s *Store, bucket string) error {
	rule := types.ServerSideEncryptionRule{
		ApplyServerSideEncryptionByDefault: &types.ServerSideEncryptionByDefault{
			SSEAlgorithm: types.ServerSideEncryption(e.Algorithm),
		},
		BucketKeyEnabled: aws.Bool(e.BucketKey),
	}
	if e.KMSKeyID != "" {
		rule.ApplyServerSideEncryptionByDefault.KMSMasterKeyID = aws.String(e.KMSKeyID)
	}
	// The encryption document also lists the types of encryption that clients may not use;
	// this list is kept, because it cannot be declared.
	rules, err := readEncryption(ctx, s, bucket)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(rules, func(r types.ServerSideEncryptionRule) bool { return r.BlockedEncryptionTypes != nil }); i >= 0 {
		rule.BlockedEncryptionTypes = rules[i].BlockedEncryptionTypes
	}
	_, err = ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.PutBucketEncryptionOutput, error) {
		return c.PutBucketEncryption(ctx, &s3.PutBucketEncryptionInput{
			Bucket: &bucket,
			ServerSideEncryptionConfiguration: &types.ServerSideEncryptionConfiguration{
				Rules: []types.ServerSideEncryptionRule{rule},
			},
		}, withMD5)
	})
	return err
}

var removeEncryption = deletion(func(ctx context.Context, c *s3.Client, bucket *string) (*s3.DeleteBucketEncryptionOutput, error) {
	return c.DeleteBucketEncryption(ctx, &s3.DeleteBucketEncryptionInput{Bucket: bucket})
}, codeNoEncryption)

type publicAccessBlock v1.PublicAccessBlock

func declaredPublicAccessBlock(spec *v1.StorageBucketSpec) value {
	if spec.PublicAccessBlock == nil {
		return nil
	}
	return publicAccessBlock(*spec.PublicAccessBlock)
}

func (b publicAccessBlock) heldBy(ctx context.Context, s *Store, bucket string) (bool, error) {
	out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.GetPublicAccessBlockOutput, error) {
		return c.GetPublicAccessBlock(ctx, &s3.GetPublicAccessBlockInput{Bucket: &bucket})
	}, codeNoPublicAccessBlock)
	if err != nil {
		return false, err
	}
	// A bucket without a public access block configuration blocks nothing.
	var has publicAccessBlock
	if out != nil && out.PublicAccessBlockConfiguration != nil {
		p := out.PublicAccessBlockConfiguration
		has = publicAccessBlock{
			BlockPublicACLs:       aws.ToBool(p.BlockPublicAcls),
			IgnorePublicACLs:      aws.ToBool(p.IgnorePublicAcls),
			BlockPublicPolicy:     aws.ToBool(p.BlockPublicPolicy),
			RestrictPublicBuckets: aws.ToBool(p.RestrictPublicBuckets),
		}
	}
	return has == b, nil
}

func (b publicAccessBlock) putInto(ctx context.Context, s *Store, bucket string) error {
	_, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.PutPublicAccessBlockOutput, error) {
		return c.PutPublicAccessBlock(ctx, &s3.PutPublicAccessBlockInput{
			Bucket: &bucket,
			PublicAccessBlockConfiguration: &types.PublicAccessBlockConfiguration{
				BlockPublicAcls:       &b.BlockPublicACLs,
				IgnorePublicAcls:      &b.IgnorePublicACLs,
				BlockPublicPolicy:     &b.BlockPublicPolicy,
				RestrictPublicBuckets: &b.RestrictPublicBuckets,
			},
		}, withMD5)
	})
	return err
}

var removePublicAccessBlock = deletion(func(ctx context.Context, c *s3.Client, bucket *string) (*s3.DeletePublicAccessBlockOutput, error) {
	return c.DeletePublicAccessBlock(ctx, &s3.DeletePublicAccessBlockInput{Bucket: bucket})
}, codeNoPublicAccessBlock)
