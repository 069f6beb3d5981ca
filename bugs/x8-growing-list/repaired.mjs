// Only the first key is the controller's own. All others follow from the spec alone.

export const keys = (own, stored, declared) => [own, ...declared];
