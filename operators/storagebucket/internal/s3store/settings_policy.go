package s3store

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	v1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

const codeNoPolicy = "NoSuchBucketPolicy"

// policy is a bucket policy, as JSON.
type policy []byte

func declaredPolicy(spec *v1.StorageBucketSpec) value {
	if spec.Policy == nil || len(spec.Policy.Raw) == 0 || string(spec.Policy.Raw) == "null" {
		return nil
	}
	return policy(spec.Policy.Raw)
}

// MarshalJSON writes the policy with its keys sorted, so that neither spaces nor the
// order of keys change its hash.
func (p policy) MarshalJSON() ([]byte, error) {
	document, err := readJSON(p)
	if err != nil {
		return nil, err
	}
	return json.Marshal(document)
}

func readJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	// Numbers keep their spelling: an account ID may look like a number.
	decoder.UseNumber()
	var document any
	err := decoder.Decode(&document)
	return document, err
}

func (p policy) heldBy(ctx context.Context, s *Store, bucket string) (bool, error) {
	out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.GetBucketPolicyOutput, error) {
		return c.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &bucket})
	}, codeNoPolicy)
	if out == nil {
		return false, err
	}
	return samePolicy(p, []byte(aws.ToString(out.Policy))), nil
}

func (p policy) putInto(ctx context.Context, s *Store, bucket string) error {
	_, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.PutBucketPolicyOutput, error) {
		return c.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: &bucket, Policy: aws.String(string(p))}, withMD5)
	})
	return err
}

var removePolicy = deletion(func(ctx context.Context, c *s3.Client, bucket *string) (*s3.DeleteBucketPolicyOutput, error) {
	return c.DeleteBucketPolicy(ctx, &s3.DeleteBucketPolicyInput{Bucket: bucket})
}, codeNoPolicy)

// samePolicy compares the meaning of two policies, because stores rewrite policies. The
// IAM reference on policy elements describes the spellings that have the same meaning:
// one value instead of a list of one, lists in another order, "*" for any AWS principal,
// an account's root user instead of the account.
func samePolicy(a, b []byte) bool {
	x, err := readJSON(a)
	if err != nil {
		return false
	}
	y, err := readJSON(b)
	if err != nil {
		return false
	}
	return reflect.DeepEqual(plainPolicy(x), plainPolicy(y))
}

// plainPolicy rewrites a policy so that policies with the same meaning are equal.
func plainPolicy(document any) any {
	p, ok := document.(map[string]any)
	if !ok {
		return document
	}
	var statements []any
	for _, statement := range asList(p["Statement"]) {
		statements = append(statements, plainStatement(statement))
	}
	p["Statement"] = sorted(statements)
	return p
}

func plainStatement(statement any) any {
	s, ok := statement.(map[string]any)
	if !ok {
		return statement
	}
	for key, content := range s {
		switch key {
		case "Action", "NotAction", "Resource", "NotResource":
			s[key] = sorted(asList(content))
		case "Principal", "NotPrincipal":
			s[key] = plainPrincipal(content)
		case "Condition":
			s[key] = plainCondition(content)
		case "Sid":
			if content == "" {
				delete(s, key)
			}
		}
	}
	return s
}

var rootOfAccount = regexp.MustCompile(`^arn:aws[a-z-]*:iam::([0-9]{12}):root$`)

func plainPrincipal(principal any) any {
	if principal == "*" {
		principal = map[string]any{"AWS": "*"}
	}
	kinds, ok := principal.(map[string]any)
	if !ok {
		return principal
	}
	for kind, who := range kinds {
		list := asList(who)
		for i, one := range list {
			if text, ok := one.(string); ok && kind == "AWS" {
				list[i] = rootOfAccount.ReplaceAllString(text, "$1")
			}
		}
		kinds[kind] = sorted(list)
	}
	return kinds
}

// plainCondition converts all values to lists of strings, because they are
// compared as strings.
func plainCondition(condition any) any {
	operators, ok := condition.(map[string]any)
	if !ok {
		return condition
	}
	for _, operator := range operators {
		keys, ok := operator.(map[string]any)
		if !ok {
			continue
		}
		for key, content := range keys {
			list := asList(content)
			for i, one := range list {
				switch one.(type) {
				case bool, json.Number:
					list[i] = strings.Trim(textOf(one), `"`)
				}
			}
			keys[key] = sorted(list)
		}
	}
	return operators
}

// asList converts a value that is not a list to a list of one.
func asList(content any) []any {
	switch c := content.(type) {
	case nil:
		return nil
	case []any:
		return c
	default:
		return []any{c}
	}
}

// sorted sorts a list by its JSON and drops duplicates.
func sorted(list []any) []any {
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(textOf(a), textOf(b)) })
	return slices.CompactFunc(list, func(a, b any) bool { return textOf(a) == textOf(b) })
}

func textOf(content any) string {
	text, err := json.Marshal(content)
	if err != nil {
		return ""
	}
	return string(text)
}
