// Creates and repairs the ConfigMaps that a controller makes for its resources.
import {isDeepStrictEqual} from 'node:util';

const pathOf = ({namespace, name}) => `/api/v1/namespaces/${namespace}/configmaps/${name}`;

// configMap returns a ConfigMap that a resource controls.
export function configMap(resource, name, data) {
  const {apiVersion, kind, metadata} = resource;
  const ownerReferences = [{apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true, blockOwnerDeletion: true}];
  return {apiVersion: 'v1', kind: 'ConfigMap', metadata: {namespace: metadata.namespace, name, ownerReferences}, data};
}

// ensure creates a ConfigMap, or gives it the wanted data and owner.
export async function ensure(client, want) {
  const {namespace, ownerReferences} = want.metadata;
  const have = await client.get(pathOf(want.metadata));
  if (!have) {
    await client.call('POST', `/api/v1/namespaces/${namespace}/configmaps`, want);
    return;
  }
  if (have.metadata.deletionTimestamp) return; // the deletion will cause an event
  if (isDeepStrictEqual(have.data ?? {}, want.data) && isDeepStrictEqual(have.metadata.ownerReferences, ownerReferences)) return;
  await client.call('PUT', pathOf(want.metadata), {...have, data: want.data, metadata: {...have.metadata, ownerReferences}});
}

// observed writes to the status which generation of a resource was reconciled.
export async function observed(client, path, resource) {
  const {generation} = resource.metadata;
  if (resource.status?.generation === generation) return;
  await client.call('PUT', `${path}/status`, {...resource, status: {generation}});
}
