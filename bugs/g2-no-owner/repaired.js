// The Secrets are owned by their SecretSet, so the garbage collector deletes them with
// it. Secrets whose template was removed are deleted here, but only if they have not
// changed since they were read.
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
