// A collector without an aggregator writes to its standard output.

export const target = ({metadata, spec}) =>
  spec.aggregator ? `${metadata.name}-aggregator:${spec.aggregator.port ?? 24224}` : 'stdout';
