// The bug of elastic/cloud-on-k8s#4051: to keep its own key, the controller takes over all stored
// keys, and then adds those of the spec. So each reconcile adds the keys of the spec again, and the
// change of the ConfigMap leads to the next reconcile.

export const keys = (own, stored, declared) => [...(stored.length ? stored : [own]), ...declared];
