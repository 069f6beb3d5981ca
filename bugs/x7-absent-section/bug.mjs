// The bug of kube-logging/logging-operator#871: the collector forwards to the aggregator, but the
// schema does not require an aggregator. Without one, the controller ends with a TypeError at every
// start, so that no other resource is reconciled either.

export const target = ({metadata, spec}) => `${metadata.name}-aggregator:${spec.aggregator.port ?? 24224}`;
