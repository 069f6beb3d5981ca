package kubelet

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/kubernetes/pkg/kubelet/server"
)

// auth admits only the API server, and rejects even clients with other
// certificates of the plane, because the API server decides who may access
// Pods.
func (c Config) auth() (server.AuthInterface, error) {
	ca, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", c.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("reading the CA for clients: %w", err)
	}
	return server.NewKubeletAuth(
		x509.NewDynamic(ca.VerifyOptions, x509.CommonNameUserConversion),
		server.NewNodeAuthorizerAttributesGetter(types.NodeName(c.NodeName)),
		only(Client),
		ca,
	), nil
}

// only is an authorizer that allows the requests of a single user.
type only string

func (name only) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == string(name) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionDeny, "only the API server may send requests to a kubelet", nil
}
