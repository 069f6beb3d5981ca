package notify

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

const (
	// minToken is the minimum length of a token in a file. Only the network limits how fast
	// a client can guess a token.
	minToken = 16

	// The responses of the API server are cached for these times.
	tokenTTL   = time.Minute
	noTokenTTL = 10 * time.Second
	allowTTL   = time.Minute
	denyTTL    = 10 * time.Second

	// reviewsPerSecond limits the requests to the API server about tokens that are not
	// in the cache. There is a limit because unknown clients can cause these requests.
	reviewsPerSecond, reviewBurst = 10, 50
)

var (
	errUnauthenticated = &refusal{http.StatusUnauthorized, "send the header Authorization with Bearer and a token: " +
		"the one in --notify-token-file, or one of a Kubernetes service account"}
	errForbidden = &refusal{http.StatusForbidden, "the token's owner is not allowed to do this: " +
		"it needs permission to create objectstores/notify or storagebuckets/poke in the group storage.koboshi.dev"}
	errBusy = &refusal{http.StatusTooManyRequests, "too many unknown tokens at the moment: try again"}
)

// access is the right that a client needs.
type access struct {
	resource, subresource string
	about                 types.NamespacedName
}

// gate authorizes clients: a client with the token from the file may do
// everything; others may do what the API server allows.
type gate struct {
	tokenFile string
	tokens    authenticator.Token
	rights    authorizer.Authorizer
}

func newGate(tokenFile string, config *rest.Config, client *http.Client) (*gate, error) {
	g := &gate{tokenFile: tokenFile}
	if tokenFile != "" {
		if _, err := readToken(tokenFile); err != nil {
			return nil, err
		}
	}
	if config == nil {
		if tokenFile == "" {
			return nil, errors.New("there is no way to authenticate clients: set --notify-token-file")
		}
		return g, nil
	}
	if client == nil {
		var err error
		if client, err = rest.HTTPClientFor(config); err != nil {
			return nil, fmt.Errorf("creating a client for the API server: %w", err)
		}
	}
	return g, g.askAPIServer(config, client)
}

// askAPIServer makes the gate check tokens and rights with the API server, in the same way
// as the manager's metrics endpoint.
func (g *gate) askAPIServer(config *rest.Config, client *http.Client) error {
	authentication, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return fmt.Errorf("creating a client for TokenReviews: %w", err)
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return fmt.Errorf("creating a client for SubjectAccessReviews: %w", err)
	}
	g.tokens = cache.New(reviews(authentication.TokenReviews()), false, tokenTTL, noTokenTTL)
	retry := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4}
	g.rights, err = authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: authorization,
		AllowCacheTTL:             allowTTL,
		DenyCacheTTL:              denyTTL,
		WebhookRetryBackoff:       &retry,
	}.New()
	if err != nil {
		return fmt.Errorf("setting up SubjectAccessReviews: %w", err)
	}
	return nil
}

// reviews returns an authenticator that gets the owner of a token from the API server. The
// authenticator returns no error for an unknown token, so that this result is cached as
// well.
func reviews(client authenticationclient.TokenReviewInterface) authenticator.Token {
	limit := rate.NewLimiter(reviewsPerSecond, reviewBurst)
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		if !limit.Allow() {
			return nil, false, errBusy
		}
		review, err := client.Create(ctx,
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		if err != nil {
			return nil, false, fmt.Errorf("creating a TokenReview: %w", err)
		}
		if !review.Status.Authenticated {
			return nil, false, nil
		}
		who := &user.DefaultInfo{
			Name: review.Status.User.Username, UID: review.Status.User.UID, Groups: review.Status.User.Groups,
			Extra: map[string][]string{},
		}
		for key, values := range review.Status.User.Extra {
			who.Extra[key] = values
		}
		return &authenticator.Response{User: who}, true, nil
	})
}

// check returns nil if the request is allowed, and the reason otherwise.
func (g *gate) check(ctx context.Context, h http.Header, a access) error {
	token := tokenOf(h)
	if token == "" {
		return errUnauthenticated
	}
	if g.tokenFile != "" {
		own, err := readToken(g.tokenFile)
		if err == nil && same(own, token) {
			return nil
		}
		if err != nil && g.tokens == nil {
			return err
		}
	}
	if g.tokens == nil {
		return errUnauthenticated
	}
	who, ok, err := g.tokens.AuthenticateToken(ctx, token)
	if err != nil {
		return fmt.Errorf("asking the API server for the owner of the token: %w", err)
	}
	if !ok {
		return errUnauthenticated
	}
	decision, _, err := g.rights.Authorize(ctx, authorizer.AttributesRecord{
		User:            who.User,
		Verb:            "create",
		APIGroup:        storagev1.GroupVersion.Group,
		APIVersion:      storagev1.GroupVersion.Version,
		Resource:        a.resource,
		Subresource:     a.subresource,
		Namespace:       a.about.Namespace,
		Name:            a.about.Name,
		ResourceRequest: true,
	})
	if err != nil {
		return fmt.Errorf("asking the API server what the token's owner may do: %w", err)
	}
	if decision != authorizer.DecisionAllow {
		return errForbidden
	}
	return nil
}

// tokenOf returns the token in the header. Some senders, such as MinIO, may
// leave out the word Bearer.
func tokenOf(h http.Header) string {
	value := strings.TrimSpace(h.Get("Authorization"))
	if scheme, token, found := strings.Cut(value, " "); found {
		if !strings.EqualFold(scheme, "Bearer") {
			return ""
		}
		value = strings.TrimSpace(token)
	}
	if strings.ContainsAny(value, " \t,") {
		return ""
	}
	return value
}

// readToken reads the file, which is small, each time, so that a replaced token is valid
// immediately.
func readToken(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the token for notifications: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if len(token) < minToken || strings.ContainsAny(token, " \t\r\n,") {
		return "", fmt.Errorf("reading the token for notifications: %s must contain one word of at least %d characters", path, minToken)
	}
	return token, nil
}

// same compares two tokens, in a time that does not depend on their content.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
