// The Secrets are owned by their SecretSet, so the garbage collector deletes them with
// it. Those of templates that were removed are deleted here, in exactly the state that
// was read.
import {label} from './label.js';

export const owners = ({apiVersion, kind, metadata: {name, uid}}) => [
  {apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true},
];

export async function prune(core, set, templates) {
  const {namespace, name: owner, uid} = set.metadata;
  const {items} = await core.listNamespacedSecret({namespace, labelSelector: `${label}=${owner}`});
  const wanted = new Set(templates.map((template) => `${owner}-${template}`));
  for (const {metadata} of items) {
    const {name, resourceVersion, deletionTimestamp, ownerReferences = []} = metadata;
    if (wanted.has(name) || deletionTimestamp || !ownerReferences.some((ref) => ref.uid === uid)) continue;
    await core.deleteNamespacedSecret({namespace, name, body: {preconditions: {uid: metadata.uid, resourceVersion}}});
  }
}
