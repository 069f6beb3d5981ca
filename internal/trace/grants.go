package trace

import rbacv1 "k8s.io/api/rbac/v1"

// Grants lists what roles allow the controller to do. Each Grants entry replaces the previous one.
type Grants struct {
	// Account is the controller's service account, as NAMESPACE/NAME. Account is empty if the
	// controller runs as an administrator.
	Account string `json:"account,omitempty"`
	Roles   []Role `json:"roles,omitempty"`
	// Unknown names the roles that are bound to the account, but whose rules are not known.
	Unknown []string `json:"unknown,omitempty"`
}

// Role is a Role or ClusterRole that is bound to the controller's service account.
type Role struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Namespace is the namespace in which the role is bound; it is empty if the role is bound in
	// the entire cluster.
	Namespace string              `json:"namespace,omitempty"`
	File      string              `json:"file,omitempty"`
	Rules     []rbacv1.PolicyRule `json:"rules"`
	// Idle holds the resources, as "resource.group", that the controller does not use here,
	// but would use in a cluster. Each value is the reason.
	Idle map[string]string `json:"idle,omitempty"`
}
